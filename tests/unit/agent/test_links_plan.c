// SPDX-License-Identifier: GPL-2.0-only
// When the network is looked at, and what follows from a look, without devices and a clock.
#include "ctl/agent/links_plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define ONE   4 // a device
#define OTHER 5

// A plan that has looked at the device ONE and at no backend yet, and its clock.
struct world {
	struct links_plan plan;
	struct plan_now now;
};

static struct link link_of(uint32_t index, const char *name)
{
	struct link link = {.index = index, .mtu = 1500, .up = true, .running = true};

	snprintf(link.name, sizeof(link.name), "%s", name);
	return link;
}

static struct addr addr4(uint8_t last)
{
	return (struct addr){.family = 4, .bytes = {10, 78, 2, last}};
}

// A look at these devices and backends, which takes `ms`.
static void look(struct world *w, const struct link *links, size_t n, const struct addr *hops,
		 size_t n_hops, uint64_t ms)
{
	uint64_t began = w->now.ms;

	links_plan_begin(&w->plan);
	links_plan_instance(&w->plan, 7, 70);
	links_plan_devices(&w->plan, links, n);
	links_plan_hops(&w->plan, hops, n_hops);
	w->now.ms += ms;
	links_plan_end(&w->plan, began, &w->now);
}

static int begin(void **state)
{
	struct world *w = mem_new(struct world);
	struct link link = link_of(ONE, "near0");

	w->now = (struct plan_now){.ms = 1000000, .wall_s = 1700000000};
	look(w, &link, 1, NULL, 0, 1);
	*state = w;
	return 0;
}

// It has also looked at backends, in no order; one is a gateway for two others.
static int begin_served(void **state)
{
	const struct addr hops[] = {addr4(9), addr4(2), addr4(1), addr4(2)};
	struct link link = link_of(ONE, "near0");
	struct world *w;

	begin(state);
	w = *state;
	look(w, &link, 1, hops, 4, 1);
	return 0;
}

static int end(void **state)
{
	links_plan_free(&((struct world *)*state)->plan);
	mem_cleanup_free(state);
	return 0;
}

static struct links_news event(struct world *w, const struct monitor_event *e)
{
	return links_plan_event(&w->plan, e, &w->now);
}

static struct links_news link_event(struct world *w, const struct link *link)
{
	return event(w, &(struct monitor_event){.kind = MONITOR_LINK, .link = *link});
}

static struct links_news neighbour(struct world *w, uint8_t last, enum neigh_state state,
				   uint8_t mac)
{
	const struct neigh n = {
		.ifindex = ONE, .addr = addr4(last), .state = state, .mac = {2, 0, 0, 0, 0, mac}};

	return event(w, &(struct monitor_event){.kind = MONITOR_NEIGH, .neigh = n});
}

static struct links_news route(struct world *w, uint8_t last, uint8_t len)
{
	const struct addr to = addr4(last);

	return event(w,
		     &(struct monitor_event){.kind = MONITOR_ROUTE, .prefix = prefix_of(&to, len)});
}

// Until the look that is due; it is forgotten.
static uint64_t wait_ms(struct world *w)
{
	uint64_t due = w->plan.due_ms;

	w->plan.due_ms = 0;
	return due ? due - w->now.ms : UINT64_MAX;
}

#define NO_LOOK UINT64_MAX

static void forget_look(struct world *w)
{
	w->plan.due_ms = 0;
}

static const char *last_said(const struct world *w)
{
	return w->plan.messages.n ? vec_last(&w->plan.messages)->text : "";
}

// ---- when ---------------------------------------------------------------------------------------

static void a_burst_is_one_look(void **state)
{
	const struct monitor_event address = {.kind = MONITOR_ADDRESS};
	struct world *w = *state;

	assert_true(event(w, &address).addresses);
	w->now.ms += 30;
	event(w, &address);
	assert_int_equal(wait_ms(w), 20);
}

static void looks_take_a_tenth_of_the_time(void **state)
{
	const struct monitor_event address = {.kind = MONITOR_ADDRESS};
	struct world *w = *state;

	look(w, NULL, 0, NULL, 0, 300);
	event(w, &address);
	assert_int_equal(wait_ms(w), 3000);
}

static void backends_are_asked_at_intervals(void **state)
{
	const struct addr hop = addr4(1);
	struct world *w = *state;

	assert_int_equal(wait_ms(w), NO_LOOK);
	look(w, NULL, 0, &hop, 1, 1);
	links_plan_need(&w->plan, &w->now);
	assert_int_equal(wait_ms(w), 50);
	look(w, NULL, 0, &hop, 1, 1);
	assert_int_equal(wait_ms(w), 15000);
}

static void a_command_matters_with_another_policy_or_instance(void **state)
{
	struct world *w = *state;

	links_plan_command(&w->plan, 7, 70, &w->now);
	assert_int_equal(wait_ms(w), NO_LOOK);
	links_plan_command(&w->plan, 8, 70, &w->now);
	assert_int_equal(wait_ms(w), 50);
	links_plan_command(&w->plan, 7, 71, &w->now);
	assert_int_equal(wait_ms(w), 50);
}

// ---- devices ------------------------------------------------------------------------------------

static void counters_of_a_device_do_not_matter(void **state)
{
	struct link link = link_of(ONE, "near0");
	struct world *w = *state;

	link.rx_packets = 17;
	assert_false(link_event(w, &link).link);
	assert_int_equal(wait_ms(w), NO_LOOK);
	link.mtu = 1400;
	assert_true(link_event(w, &link).link);
	assert_int_equal(wait_ms(w), 50);
	snprintf(link.name, sizeof(link.name), "far0");
	link_event(w, &link);
	assert_int_equal(wait_ms(w), 50);
	link.mac[5] = 9;
	link_event(w, &link);
	assert_int_equal(wait_ms(w), 50);
}

static void a_dead_link_is_news_for_checks(void **state)
{
	struct link link = link_of(ONE, "near0");
	struct world *w = *state;
	struct links_news news;

	link.running = false;
	news = link_event(w, &link);
	assert_true(news.link && news.dead);
	link.running = true;
	news = link_event(w, &link);
	assert_true(news.link && !news.dead);
	forget_look(w);
	news = event(w, &(struct monitor_event){.kind = MONITOR_LINK_GONE, .link = link});
	assert_true(news.link && news.dead);
	assert_int_equal(wait_ms(w), 50);
	event(w, &(struct monitor_event){.kind = MONITOR_LINK_GONE, .link = link});
	assert_int_equal(wait_ms(w), NO_LOOK);
}

static void a_device_is_new_until_it_is_attached(void **state)
{
	struct link links[] = {link_of(ONE, "near0"), link_of(OTHER, "extra0")};
	struct world *w = *state;

	assert_false(links_plan_is_new(&w->plan, ONE));
	link_event(w, &links[1]);
	assert_true(links_plan_is_new(&w->plan, OTHER));
	look(w, links, 2, NULL, 0, 1);
	assert_true(links_plan_is_new(&w->plan, OTHER));
	links_plan_attached(&w->plan, "extra0");
	look(w, links, 2, NULL, 0, 1);
	assert_false(links_plan_is_new(&w->plan, OTHER));
	look(w, links, 1, NULL, 0, 1);
	look(w, links, 2, NULL, 0, 1); // its message was lost
	assert_true(links_plan_is_new(&w->plan, OTHER));
}

static void a_device_that_comes_before_the_first_look_is_new(void **state)
{
	struct link links[] = {link_of(ONE, "near0"), link_of(OTHER, "extra0")};
	struct world *w = *state;

	links_plan_free(&w->plan);
	w->plan = (struct links_plan){0};
	link_event(w, &links[1]);
	look(w, links, 2, NULL, 0, 1);
	assert_true(links_plan_is_new(&w->plan, OTHER));
	assert_false(links_plan_is_new(&w->plan, ONE));
}

// ---- backends -----------------------------------------------------------------------------------

static void a_neighbour_matters_if_it_is_a_hop(void **state)
{
	struct world *w = *state;

	assert_int_equal(w->plan.hops.n, 3);
	forget_look(w);
	neighbour(w, 3, NEIGH_KNOWN, 1);
	assert_int_equal(wait_ms(w), NO_LOOK);
	neighbour(w, 2, NEIGH_ASKED, 0);
	assert_int_equal(wait_ms(w), NO_LOOK);
	assert_false(neighbour(w, 2, NEIGH_KNOWN, 1).suspect);
	assert_int_equal(wait_ms(w), 50);
}

static void the_same_answer_of_a_neighbour_is_no_change(void **state)
{
	const struct addr hops[] = {addr4(1), addr4(2), addr4(9)};
	struct world *w = *state;

	neighbour(w, 2, NEIGH_KNOWN, 1);
	look(w, NULL, 0, hops, 3, 1);
	forget_look(w);
	neighbour(w, 2, NEIGH_KNOWN, 1);
	assert_int_equal(wait_ms(w), NO_LOOK);
	neighbour(w, 2, NEIGH_KNOWN, 2);
	assert_int_equal(wait_ms(w), 50);
}

static void a_silent_neighbour_is_suspect(void **state)
{
	struct world *w = *state;

	neighbour(w, 2, NEIGH_KNOWN, 1);
	forget_look(w);
	assert_true(neighbour(w, 2, NEIGH_FAILED, 0).suspect);
	assert_int_equal(wait_ms(w), 50);
	assert_true(neighbour(w, 2, NEIGH_FAILED, 0).suspect);
	assert_int_equal(wait_ms(w), NO_LOOK);
	assert_false(neighbour(w, 3, NEIGH_FAILED, 0).suspect);
}

static void a_route_matters_if_a_hop_is_in_it(void **state)
{
	struct world *w = *state;

	forget_look(w);
	assert_true(route(w, 3, 32).addresses);
	assert_int_equal(wait_ms(w), NO_LOOK);
	route(w, 4, 30); // 10.78.2.4 to .7
	assert_int_equal(wait_ms(w), NO_LOOK);
	route(w, 8, 29); // to .15
	assert_int_equal(wait_ms(w), 50);
	route(w, 0, 0);
	assert_int_equal(wait_ms(w), 50);
}

static void lost_neighbours_are_logged_once_and_their_end(void **state)
{
	char one[] = "service 'web': 10.78.2.1 does not answer", two[] = "service 'web': no route";
	char *both[] = {one, two};
	struct world *w = *state;

	links_plan_lost(&w->plan, both, 1);
	links_plan_lost(&w->plan, both, 2);
	assert_int_equal(w->plan.messages.n, 2);
	assert_string_equal(last_said(w), two);
	links_plan_lost(&w->plan, both + 1, 1);
	assert_int_equal(w->plan.messages.n, 3);
	assert_string_equal(last_said(w), "no longer: service 'web': 10.78.2.1 does not answer");
}

// ---- changes ------------------------------------------------------------------------------------

static enum links_write write_of(struct world *w, size_t devices, bool attached, size_t hops,
				 bool stale)
{
	return links_plan_write(&w->plan, devices, attached, hops, stale, &w->now);
}

static void next_hops_are_written_with_the_rest(void **state)
{
	struct world *w = *state;

	assert_int_equal(write_of(w, 0, true, 0, false), LINKS_NOTHING);
	assert_int_equal(write_of(w, 0, true, 2, true), LINKS_PATHS);
	assert_int_equal(write_of(w, 0, true, 0, true), LINKS_MACS);
	assert_int_equal(wait_ms(w), NO_LOOK);
}

static void an_attached_device_is_looked_at_again(void **state)
{
	struct world *w = *state;

	assert_int_equal(write_of(w, 1, true, 0, true), LINKS_NOTHING);
	assert_int_equal(wait_ms(w), 50);
	assert_int_equal(write_of(w, 1, false, 0, true), LINKS_MACS);
	assert_int_equal(wait_ms(w), NO_LOOK);
}

static void many_next_hops_are_named_in_part(void **state)
{
	struct addr moved[9];
	struct world *w = *state;

	for (uint8_t n = 0; n < 9; n++)
		moved[n] = addr4(n);
	links_plan_moved(&w->plan, moved + 1, 1, 1);
	assert_string_equal(last_said(w), "1 next hop has changed: 10.78.2.1");
	links_plan_moved(&w->plan, moved, 9, 9);
	assert_string_equal(last_said(w),
			    "9 next hops have changed: 10.78.2.0 10.78.2.1 10.78.2.2 10.78.2.3 "
			    "10.78.2.4 10.78.2.5 10.78.2.6 10.78.2.7 and others");
}

int main(void)
{
#define TEST(name)   cmocka_unit_test_setup_teardown(name, begin, end)
#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin_served, end)
	const struct CMUnitTest tests[] = {
		TEST(a_burst_is_one_look),
		TEST(looks_take_a_tenth_of_the_time),
		TEST(backends_are_asked_at_intervals),
		TEST(a_command_matters_with_another_policy_or_instance),
		TEST(counters_of_a_device_do_not_matter),
		TEST(a_dead_link_is_news_for_checks),
		TEST(a_device_is_new_until_it_is_attached),
		TEST(a_device_that_comes_before_the_first_look_is_new),
		SERVED(a_neighbour_matters_if_it_is_a_hop),
		SERVED(the_same_answer_of_a_neighbour_is_no_change),
		SERVED(a_silent_neighbour_is_suspect),
		SERVED(a_route_matters_if_a_hop_is_in_it),
		TEST(lost_neighbours_are_logged_once_and_their_end),
		TEST(next_hops_are_written_with_the_rest),
		TEST(an_attached_device_is_looked_at_again),
		TEST(many_next_hops_are_named_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
