// SPDX-License-Identifier: GPL-2.0-only
// Carries the packets of checks between a namespace of the agent and the backends.
//
// Out: a socket in the enclave (ctl/net/enclave.h) sends to the VIP; its packet reaches the agent
// through the tun device. The source port identifies its backend. The element of that backend in
// the kernel gives the headers, and a packet socket sends the frame. In: the datapath gives frames
// of awaited flows another ethertype (common/answer.h), for which a second packet socket is open;
// the packet in them goes into the tun device.
#include "ctl/agent/path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/answers.h"
#include "ctl/datapath/lb_maps.h"
#include "ctl/net/enclave.h"
#include "ctl/net/loop.h"

#define PACKETS_AT_ONCE 64
#define PACKET_MAX      65536
#define LINGER_MS       1000 // after the time-out of a check its last packets still go
#define REST_MS         100  // the same after its end
#define HEAD            (sizeof(struct virtio_net_hdr))

// A port of the enclave.
struct flow {
	struct path_way *way; // NULL: free
	struct answer_key key;
	uint64_t until_ms;
};

struct path {
	struct agent *agent;
	struct instance *instance;
	struct lb_maps *live;
	struct enclave enclave;
	int in, out; // packet sockets
	struct event *on_tun, *on_in;
	uint32_t next;            // port to try
	VEC(struct addr) sources; // addresses of the enclave
	struct flow flows[ANSWER_PORTS];
	uint8_t buffer[WRAP_MOST + PACKET_MAX];
};

struct path_way {
	struct path *path;
	uint32_t id; // number of the backend
	uint8_t mode;
	struct path_ends ends;
	uint32_t timeout_ms;
	struct flow *last; // flow of its checks; NULL: none yet
};

// The fields of a packet that both directions read: addresses and ports.
struct ends {
	uint8_t family, proto;
	const uint8_t *source, *dest;
	uint16_t sport, dport;
};

static bool read_ends(const uint8_t *ip, size_t length, struct ends *ret)
{
	size_t header = length && ip[0] >> 4 == 4 ? 20 : 40;
	uint16_t ports[2];

	if (length < header + sizeof(ports) || (header == 20 ? ip[0] != 0x45 : ip[0] >> 4 != 6))
		return false;
	memcpy(ports, ip + header, sizeof(ports));
	*ret = (struct ends){
		.family = header == 20 ? 4 : 6,
		.proto = header == 20 ? ip[9] : ip[6],
		.source = header == 20 ? ip + 12 : ip + 8,
		.dest = header == 20 ? ip + 16 : ip + 24,
		.sport = ntohs(ports[0]),
		.dport = ntohs(ports[1]),
	};
	return ret->proto == IPPROTO_TCP || ret->proto == IPPROTO_UDP;
}

static bool is_at(const struct addr *a, uint8_t family, const uint8_t *bytes)
{
	return a->family == family && !memcmp(a->bytes, bytes, family == 4 ? 4 : 16);
}

// The flow of this port of ours, if it goes between these addresses. NULL: none.
static const struct flow *flow_of(const struct path *p, uint16_t own, uint16_t other,
				  const struct ends *e, const uint8_t *source, const uint8_t *vip)
{
	const struct flow *f = &p->flows[own & (ANSWER_PORTS - 1)];

	if (!f->way || f->key.dport != own || f->key.sport != other || f->key.proto != e->proto)
		return NULL;
	return is_at(&f->way->ends.source, e->family, source) &&
			       is_at(&f->way->ends.vip, e->family, vip)
		       ? f
		       : NULL;
}

// ---- to the backend -----------------------------------------------------------------------------

static void send_packet(struct path *p, uint8_t *packet, size_t length)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = ETH_ALEN};
	const struct backend *in_kernel;
	const struct flow *f;
	struct backend row;
	struct ends e;
	uint8_t *frame;

	if (!read_ends(packet, length, &e) ||
	    !(f = flow_of(p, e.sport, e.dport, &e, e.source, e.dest)))
		return; // the kernel's own: router solicitations, reports of groups
	in_kernel = lb_maps_backend(p->live, f->way->id);
	if (!in_kernel)
		return;
	row = *in_kernel;
	if (!row.ifindex)
		return;
	frame = wrap_packet(&row, f->way->mode, e.sport * 0x9e3779b97f4a7c15ull, packet, length);
	if (!frame)
		return;
	to.sll_ifindex = (int)row.ifindex;
	memcpy(to.sll_addr, row.mac, ETH_ALEN);
	to.sll_protocol = htons((uint16_t)(frame[12] << 8 | frame[13]));
	sendto(p->out, frame, (size_t)(packet + length - frame), 0, (struct sockaddr *)&to,
	       sizeof(to));
}

static void on_tun(evutil_socket_t fd, short what, void *ctx)
{
	struct path *p = ctx;
	uint8_t *packet = p->buffer + WRAP_MOST;

	for (int n = 0; n < PACKETS_AT_ONCE; n++) {
		ssize_t got = read(fd, packet - HEAD, HEAD + ENCLAVE_MTU);

		if (got <= (ssize_t)HEAD)
			return;
		send_packet(p, packet, (size_t)got - HEAD);
	}
}

// ---- from the backend ---------------------------------------------------------------------------

// Without the link header.
static void shift_offsets(struct virtio_net_hdr *head)
{
	if (head->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		head->csum_start = (uint16_t)(head->csum_start - ETH_HLEN);
	if (head->gso_type != VIRTIO_NET_HDR_GSO_NONE)
		head->hdr_len = (uint16_t)(head->hdr_len - ETH_HLEN);
}

static void take_frame(const struct path *p, uint8_t *frame, size_t length)
{
	uint8_t *packet = frame + HEAD + ETH_HLEN;
	struct virtio_net_hdr head;
	struct ends e;

	if (length < HEAD + ETH_HLEN || !read_ends(packet, length - HEAD - ETH_HLEN, &e) ||
	    !flow_of(p, e.dport, e.sport, &e, e.dest, e.source))
		return;
	memcpy(&head, frame, HEAD);
	shift_offsets(&head);
	memcpy(packet - HEAD, &head, HEAD);
	if (write(p->enclave.tun, packet - HEAD, length - ETH_HLEN) < 0)
		return; // lost, as packets are: the backend sends it again, or the check fails
}

static void on_in(evutil_socket_t fd, short what, void *ctx)
{
	struct path *p = ctx;

	for (int n = 0; n < PACKETS_AT_ONCE; n++) {
		ssize_t got = recv(fd, p->buffer, sizeof(p->buffer), 0);

		if (got < 0)
			return;
		take_frame(p, p->buffer, (size_t)got);
	}
}

// ---- sockets ------------------------------------------------------------------------------------

static struct answer_key key_of(const struct path_way *w, uint16_t own, uint16_t port, int type)
{
	struct answer_key key = {.sport = port,
				 .dport = own,
				 .proto = type & SOCK_DGRAM ? IPPROTO_UDP : IPPROTO_TCP};

	memcpy(key.source, w->ends.vip.bytes, sizeof(key.source));
	memcpy(key.dest, w->ends.source.bytes, sizeof(key.dest));
	return key;
}

static void end_flow(struct path *p, struct flow *f)
{
	if (!f->way)
		return;
	answers_forget(p->instance, &f->key);
	f->way = NULL;
}

static int bind_to(int fd, const struct addr *a, uint16_t port)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	memcpy(&in4.sin_addr, a->bytes, sizeof(in4.sin_addr));
	memcpy(&in6.sin6_addr, a->bytes, sizeof(in6.sin6_addr));
	if (a->family == 4 ? bind(fd, (struct sockaddr *)&in4, sizeof(in4))
			   : bind(fd, (struct sockaddr *)&in6, sizeof(in6)))
		return -errno;
	return 0;
}

// A port that no check uses, bound; -EADDRINUSE: all are used.
static int bind_free(struct path *p, const struct path_way *w, int fd, uint16_t *ret)
{
	uint64_t now = agent_now_ms();
	int code = -EADDRINUSE;

	for (uint32_t tries = 0; tries < ANSWER_PORTS && code == -EADDRINUSE; tries++) {
		struct flow *f = &p->flows[p->next++ & (ANSWER_PORTS - 1)];

		if (f->way && f->until_ms > now)
			continue;
		*ret = (uint16_t)(ANSWER_PORT_FIRST + (f - p->flows));
		code = bind_to(fd, &w->ends.source, *ret);
	}
	return code;
}

// The check ends by a reset: a connection that waits for its end would keep the port.
static int prepare(struct path_way *w, int fd, uint16_t port, int type)
{
	static const struct linger reset = {.l_onoff = 1};
	struct path *p = w->path;
	uint64_t ms = (uint64_t)w->timeout_ms + LINGER_MS;
	struct flow *f;
	uint16_t own;
	int code;

	if (type & SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)))
		return -errno;
	if ((code = bind_free(p, w, fd, &own)))
		return code;
	f = &p->flows[own & (ANSWER_PORTS - 1)];
	end_flow(p, f);
	*f = (struct flow){
		.way = w, .key = key_of(w, own, port, type), .until_ms = agent_now_ms() + ms};
	w->last = f;
	return answers_await(p->instance, &f->key, ms);
}

int path_socket(void *way, uint16_t port, int type)
{
	struct path_way *w = way;
	int fd, code;

	if (!w)
		return -EADDRNOTAVAIL;
	fd = enclave_socket(&w->path->enclave, w->ends.vip.family,
			    type | SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return fd;
	code = prepare(w, fd, port, type);
	if (!code)
		return fd;
	close(fd);
	return code == -EADDRINUSE ? -EADDRNOTAVAIL : code;
}

// ---- ways ---------------------------------------------------------------------------------------

// The enclave can send from it.
static int take_source(struct path *p, const struct addr *source, struct err *err)
{
	int code;

	vec_each (&p->sources, known)
		if (!addr_compare(known, source))
			return 0;
	if ((code = enclave_add(&p->enclave, source, err)))
		return code;
	vec_push(&p->sources, *source);
	return 0;
}

int path_way_new(struct path *p, const char *service, const struct addr *backend,
		 uint16_t backend_port, const struct path_ends *ends, uint32_t timeout_ms,
		 struct path_way **ret, struct err *err)
{
	struct lb_state *b = lb_maps_state(p->live);
	const struct lb_service *s = lb_state_find(b, service);
	const struct lb_member *m = s ? lb_state_find_member(b, s, backend, backend_port) : NULL;
	int code;

	*ret = NULL;
	if (!m)
		return 0; // a command has changed the policy since; it is read again
	if ((code = take_source(p, &ends->source, err)))
		return code;
	*ret = mem_new(struct path_way);
	**ret = (struct path_way){
		.path = p,
		.id = m->id,
		.mode = s->mode,
		.ends = *ends,
		.timeout_ms = timeout_ms,
	};
	return 0;
}

void path_way_ended(struct path_way *w)
{
	uint64_t until = agent_now_ms() + REST_MS;

	if (w && w->last && w->last->way == w && w->last->until_ms > until)
		w->last->until_ms = until;
}

void path_way_free(struct path_way *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < ANSWER_PORTS; i++)
		if (w->path->flows[i].way == w)
			end_flow(w->path, &w->path->flows[i]);
	free(w);
}

// ---- all ----------------------------------------------------------------------------------------

static int open_sockets(struct path *p, struct err *err)
{
	static const int on = 1;
	struct sockaddr_ll any = {.sll_family = AF_PACKET, .sll_protocol = htons(ANSWER_ETHERTYPE)};

	p->out = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	p->in = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->out < 0 || p->in < 0 ||
	    setsockopt(p->in, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    bind(p->in, (struct sockaddr *)&any, sizeof(any)))
		return err_system(err, errno, "cannot open packet sockets for checks");
	return 0;
}

static int watch(struct path *p, struct err *err)
{
	struct event_base *loop = p->agent->loop;

	p->on_tun = loop_event(loop, p->enclave.tun, EV_READ | EV_PERSIST, on_tun, p);
	p->on_in = loop_event(loop, p->in, EV_READ | EV_PERSIST, on_in, p);
	if (!p->on_tun || !p->on_in || event_add(p->on_tun, NULL) || event_add(p->on_in, NULL))
		return err_system(err, ENOMEM, "cannot wait for packets of checks");
	return 0;
}

static int open_all(struct path *p, uint32_t generation, struct err *err)
{
	int code = instance_open(p->agent->instance, &p->instance, err);

	if (code || (code = lb_maps_open(p->instance, generation, LB_SLOTS_USED, &p->live, err)))
		return code;
	if (!p->live)
		return err_stated(err, ENOENT, "the active policy has no services any more");
	if ((code = enclave_open(&p->enclave, err)) || (code = open_sockets(p, err)))
		return code;
	return watch(p, err);
}

int path_open(struct agent *a, uint32_t generation, struct path **ret, struct err *err)
{
	struct path *p = mem_zalloc(1, sizeof(*p));
	int code;

	p->agent = a;
	p->enclave = (struct enclave){.home = -1, .netns = -1, .tun = -1};
	p->in = p->out = -1;
	code = open_all(p, generation, err);
	if (code)
		path_free(p);
	else
		*ret = p;
	return code;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

void path_free(struct path *p)
{
	if (!p)
		return;
	loop_event_free(p->on_tun);
	loop_event_free(p->on_in);
	close_one(p->in);
	close_one(p->out);
	enclave_close(&p->enclave);
	lb_maps_close(p->live);
	instance_free(p->instance);
	vec_free(&p->sources);
	free(p);
}
