// SPDX-License-Identifier: GPL-2.0-only
// Requests for the samples of packets that the agent reads for all commands.
#pragma once

struct agent;
struct evhttp_request;

#define API_SAMPLES "/v1/samples"

// GET /v1/samples: a document of `weir top --by all` each second.
void samples_answer(struct agent *a, struct evhttp_request *request);
