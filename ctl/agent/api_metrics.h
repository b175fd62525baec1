// SPDX-License-Identifier: GPL-2.0-only
// /metrics: one run of `weir metrics` for all who ask within a second, however many they are.
#pragma once

struct agent;
struct api_metrics;
struct evhttp_request;

struct api_metrics *api_metrics_new(struct agent *a);
// Before the servers whose requests wait are freed. NULL is allowed.
void api_metrics_free(struct api_metrics *m);
// Answers a request by GET or HEAD, now or when the command has ended.
void api_metrics_answer(struct evhttp_request *request, struct api_metrics *m);
