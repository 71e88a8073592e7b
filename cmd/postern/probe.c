/* SPDX-License-Identifier: MIT */
/*
 * Sends a few requests through the real gateway, one as it is and one for each header that a client could forge, and reads back
 * from the admin listener how the client of each was found. Each carries a nonce of its own, so no other traffic matters.
 * The requests are judged and charged like any others. Towards a loopback address they come from one of 127.0.0.0/8 that
 * nobody else uses: then it shows whether postern sees this client or a hop.
 */
#include "verb.h"

#include "fetch.h"
#include "flags.h"
#include "sighting.h"
#include "url.h"

#include "base/digest.h"
#include "base/text.h"
#include "io/listen.h"
#include "server/probe.h"

#include <stdio.h>
#include <unistd.h>

#define WAYS_MAX PROBE_SIGHTINGS_MAX
#define ADDRESSES_MAX 8
#define SHOWN_BYTES 256

/* What is planted, from the ranges that are for documentation. */
static const struct forged {
	const char *header_z, *value_z, *address_z;
} forgeries[] = {
	{NULL, NULL, NULL}, /* the plain one */
	{"X-Forwarded-For", "198.51.100.77", "198.51.100.77"},
	{"Forwarded", "for=198.51.100.78", "198.51.100.78"},
	{"X-Real-IP", "198.51.100.79", "198.51.100.79"},
	{"", "198.51.100.80", "198.51.100.80"}, /* the header that is configured, where it is none of these */
};

#define N_STEPS (sizeof(forgeries) / sizeof(forgeries[0]))
enum { STEP_PLAIN, STEP_FORWARDED_FOR, STEP_CONFIGURED = N_STEPS - 1 };

struct step {
	bool skipped;
	struct str header;
	struct ip planted;
	unsigned status; /* the gateway's; 0: none */
	struct json *root;
	struct sighting seen[WAYS_MAX];
	size_t n_seen;
};

struct probe {
	struct url url;
	struct endpoint gateway, admin;
	struct ip from;
	bool has_from;
	struct sighting_place place;
	struct json *status;
	struct step steps[N_STEPS];
};

/* Text that came through the network, fit for a terminal. */
struct shown {
	char z[4 * SHOWN_BYTES + 4];
};

static const char *show(struct shown *ret, struct str s)
{
	struct text t;

	text_init(&t, ret->z, sizeof(ret->z) - 1);
	text_visible(&t, s, SHOWN_BYTES);
	ret->z[t.len] = '\0';
	return ret->z;
}

/* ---------------------------------------------------------------------------------------------------- sending */

/* The header that postern reads, empty if it reads none. */
static struct str configured_header(const struct json *status)
{
	const struct json *config = json_kind(status) == JSON_KIND_OBJECT ? json_member(status, "config") : NULL;
	const struct json *client =
		config != NULL && json_kind(config) == JSON_KIND_OBJECT ? json_member(config, "client") : NULL;
	const struct json *header =
		client != NULL && json_kind(client) == JSON_KIND_OBJECT ? json_member(client, "header") : NULL;

	return header != NULL && json_kind(header) == JSON_KIND_STRING ? json_text(header) : STR("");
}

static void steps_plan(struct probe *p)
{
	struct str configured = configured_header(p->status);

	for (size_t i = 0; i < N_STEPS; i++) {
		struct step *s = &p->steps[i];

		s->header = str_from_z(forgeries[i].header_z);
		if (i == STEP_CONFIGURED) {
			s->header = configured;
			s->skipped = !str_is_token(configured);
			for (size_t k = 0; k < i; k++)
				s->skipped = s->skipped || str_equal_nocase(configured, p->steps[k].header);
		}
		if (i != STEP_PLAIN)
			(void)ip_parse(&s->planted, str_from_z(forgeries[i].address_z));
	}
}

static int ask_admin(const struct probe *p, const char *nonce_z, struct json **ret)
{
	char target[64];

	snprintf(target, sizeof(target), "/probe/%s", nonce_z);
	return fetch_admin("probe", &p->admin, str_from_z(target), ret);
}

/* Sends the request of one step. */
static enum err send_step(struct probe *p, size_t i, const char *nonce_z)
{
	struct step *s = &p->steps[i];
	const struct header_line lines[] = {
		{STR(PROBE_HEADER), str_from_z(nonce_z)}, {s->header, str_from_z(forgeries[i].value_z)}};
	const struct fetch_question q = {.endpoint = &p->gateway,
		.from = p->has_from ? &p->from : NULL,
		.host = p->url.authority,
		.target = str_from_z(p->url.target_z),
		.headers = lines,
		.n_headers = i == STEP_PLAIN ? 1 : 2,
		.head_only = true};
	struct fetch_answer answer;
	enum err e = fetch(&answer, &q);

	if (e != ERR_OK)
		return e;
	s->status = answer.status;
	p->place.has_local = answer.has_local;
	p->place.local = answer.local;
	fetch_free(&answer);
	return ERR_OK;
}

static void read_seen(struct step *s)
{
	const struct json *seen = json_kind(s->root) == JSON_KIND_OBJECT ? json_member(s->root, "seen") : NULL;

	if (seen == NULL || json_kind(seen) != JSON_KIND_ARRAY)
		return;
	for (size_t i = 0; i < json_count(seen) && s->n_seen < WAYS_MAX; i++)
		s->n_seen += sighting_read(&s->seen[s->n_seen], json_item(seen, i));
}

static int run_step(struct probe *p, size_t i)
{
	struct step *s = &p->steps[i];
	char nonce_z[PROBE_NONCE_BYTES + 1], where_z[ENDPOINT_TEXT_BYTES];
	uint8_t bytes[PROBE_NONCE_BYTES / 2];
	struct json *awaited;
	enum err e;
	int code;

	digest_random(bytes, sizeof(bytes));
	str_hex(bytes, sizeof(bytes), nonce_z);
	code = ask_admin(p, nonce_z, &awaited);
	if (code != EXIT_DONE)
		return code;
	json_free(awaited);
	e = send_step(p, i, nonce_z);
	if (e != ERR_OK && i == STEP_PLAIN) {
		endpoint_print(&p->gateway, where_z);
		fprintf(stderr, "postern probe: the gateway %s: %s\n", where_z, err_text(e));
		return EXIT_UNREACHABLE;
	}
	code = ask_admin(p, nonce_z, &s->root);
	if (code == EXIT_DONE)
		read_seen(s);
	return code;
}

/* A source address of our own towards loopback, away from 127.0.0.1, where the hops are. */
static void choose_source(struct probe *p)
{
	uint8_t bytes[3];

	p->place.is_loopback = endpoint_is_local(&p->gateway);
	p->has_from = p->place.is_loopback && ip_is_v4(&p->gateway.ip);
	digest_random(bytes, sizeof(bytes));
	p->from = ip_from_v4(0x7f000000u | (uint32_t)(1 + bytes[0] % 250) << 16 | (uint32_t)(1 + bytes[1] % 250) << 8 |
			     (uint32_t)(1 + bytes[2] % 250));
}

/* The first address of the host that takes a connection is the gateway's. */
static int find_gateway(struct probe *p)
{
	struct endpoint found[ADDRESSES_MAX];
	size_t n = url_resolve(&p->url, found, ADDRESSES_MAX);
	enum err e = ERR_ABSENT;

	for (size_t i = 0; i < n; i++) {
		int fd;

		e = listen_connect(&fd, &found[i], FETCH_TIMEOUT_MS);
		if (e != ERR_OK)
			continue;
		close(fd);
		p->gateway = found[i];
		return EXIT_DONE;
	}
	fprintf(stderr, "postern probe: %.*s: %s\n", STR_ARG(p->url.authority),
		n == 0 ? "this name has no address" : err_text(e));
	return EXIT_UNREACHABLE;
}

/* ---------------------------------------------------------------------------------------------------- telling */

static void tell_hops(const struct sighting *s)
{
	for (size_t i = 0; s->steps != NULL && i < json_count(s->steps); i++) {
		const struct json *step = json_item(s->steps, i);
		static const char *const names[] = {"step", "raw", "verdict", "reason"};
		struct shown shown[4];

		if (json_kind(step) != JSON_KIND_OBJECT)
			continue;
		for (size_t k = 0; k < 4; k++) {
			const struct json *v = json_member(step, names[k]);

			show(&shown[k], v != NULL && json_kind(v) == JSON_KIND_STRING ? json_text(v) : STR(""));
		}
		printf("    %s%s%s: %s\n", shown[0].z, shown[1].z[0] != '\0' ? " " : "", shown[1].z,
			shown[3].z[0] != '\0' ? shown[3].z : shown[2].z);
	}
}

static void tell_way(const struct probe *p, size_t way)
{
	const struct sighting *s = &p->steps[STEP_PLAIN].seen[way];
	struct shown door, remote, client, reason, key;
	char local_z[IP_TEXT_BYTES] = "a Unix socket";

	if (p->place.has_local)
		ip_print(&p->place.local, local_z);
	printf("  sent from %s; postern was asked by %s with remote_addr %s and chose %s (%s), key %s\n", local_z,
		show(&door, s->door), show(&remote, s->remote_addr), s->client.len > 0 ? show(&client, s->client) : "nobody",
		show(&reason, s->client_reason), show(&key, s->key));
	tell_hops(s);
}

/* What is wrong where a client can choose its key, by whose writing is believed. */
static const char *advice(struct str strategy)
{
	static const struct {
		struct str strategy;
		const char *text_z;
	} rows[] = {
		{{"peer", 4}, "the gateway hands on what the client wrote as its own view of the connection: it must write that header itself"},
		{{"single_value", 12}, "the hop in trusted_proxies must replace the header by one value, not pass it on"},
		{{"rightmost", 9}, "the hop in trusted_proxies must append its own entry; this one passes the header on as it came"},
		{{"hop_count", 9}, "client.hops is larger than the number of hops that append on this way in"},
		{{"trusted_ranges", 14}, "trusted_proxies is too wide: it holds an address that clients come from"},
		{{"named_header", 12}, "the edge must overwrite that header on every request, and trusted_proxies name nobody but the edge"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_equal(strategy, rows[i].strategy))
			return rows[i].text_z;
	return "believe only what your own hops write";
}

static bool tell_forgery(const struct probe *p, size_t way, size_t i)
{
	const struct sighting *plain = &p->steps[STEP_PLAIN].seen[way], *forged = &p->steps[i].seen[way];
	struct shown header, reason;

	switch (sighting_forgery(plain, forged, &p->steps[i].planted)) {
	case FORGERY_CHOOSES:
		printf("a client can choose its key with %s: %s was written into it, and postern took that for the client\n",
			show(&header, p->steps[i].header), forgeries[i].address_z);
		printf("  cure: %s\n", advice(forged->strategy));
		return true;
	case FORGERY_LEAVES:
		printf("a client can leave its key with %s: with it the client is %s\n", show(&header, p->steps[i].header),
			show(&reason, forged->client_reason));
		printf("  cure: the first hop must drop or replace what a client sends under that name\n");
		return true;
	default: return false;
	}
}

static void tell_shared_cure(const struct probe *p, const struct sighting *s)
{
	struct str configured = configured_header(p->status);
	struct shown shown;

	if (s->cure.len > 0)
		printf("  cure: %s\n", show(&shown, s->cure));
	else if (configured.len > 0 && !str_equal_nocase(configured, STR("X-Forwarded-For")))
		printf("  cure: the edge must write %s on every request, and every hop between it and postern's gateway hand it on;\n"
		       "        \"client\" must name those hops\n",
			show(&shown, configured));
	else if (s->headers == NULL || json_count(s->headers) == 0)
		puts("  cure: every hop must hand on X-Forwarded-For with its own entry behind it, and \"client\" must name the hops; the\n"
		     "        header does not arrive (in Caddy: trusted_proxies inside forward_auth). If that address is what\n"
		     "        translation makes of this machine, as Docker does for its own host, probe from another machine");
	else
		puts("  cure: \"client\" must name every hop between the client and postern; /status of the admin listener tells which");
}

static bool tell_address(const struct probe *p, size_t way)
{
	const struct sighting *plain = &p->steps[STEP_PLAIN].seen[way];
	const struct step *forged = &p->steps[STEP_FORWARDED_FOR];
	struct shown client, reason;
	const char *client_z = plain->client.len > 0 ? show(&client, plain->client) : "nobody";

	switch (sighting_judge(plain, way < forged->n_seen ? &forged->seen[way] : NULL, &forged->planted, &p->place)) {
	case SIGHTING_APART: printf("your clients are told apart: postern saw this machine as %s\n", client_z); return false;
	case SIGHTING_PUBLIC:
		printf("your clients are told apart, if %s is the public address of this machine\n", client_z);
		return false;
	case SIGHTING_SHARED: printf("all clients share the address of %s, which is not this machine's\n", client_z); break;
	case SIGHTING_UNDECIDED:
		printf("all clients share the address of %s: none is decided (%s)\n", client_z,
			show(&reason, plain->client_reason));
		break;
	}
	tell_shared_cure(p, plain);
	return true;
}

/* EXIT_DONE, EXIT_DENY, or EXIT_UNREACHABLE where nothing came through. */
static int tell(const struct probe *p)
{
	const struct step *plain = &p->steps[STEP_PLAIN];
	bool is_bad = false;

	if (plain->n_seen == 0) {
		printf("nothing arrived: the gateway answered %u, and no request with " PROBE_HEADER " reached this postern.\n"
		       "  Either it was not asked about %s, or the gateway does not hand that header on to it\n"
		       "  (Envoy over HTTP: allowed_headers; nginx: proxy_pass_request_headers)\n",
			plain->status, p->url.target_z);
		return EXIT_UNREACHABLE;
	}
	for (size_t way = 0; way < plain->n_seen; way++) {
		bool refused = !plain->seen[way].has_client;
		struct shown reason;

		if (refused) {
			printf("the door could not use the request: %s\n", show(&reason, plain->seen[way].reason));
			is_bad = true;
			/* A header that only the client writes: the plain request lacks it. */
			for (size_t i = STEP_FORWARDED_FOR; i < N_STEPS; i++)
				if (way < p->steps[i].n_seen && p->steps[i].seen[way].has_client)
					(void)tell_forgery(p, way, i);
			continue;
		}
		is_bad = tell_address(p, way) || is_bad;
		for (size_t i = STEP_FORWARDED_FOR; i < N_STEPS; i++)
			if (way < p->steps[i].n_seen && p->steps[i].seen[way].has_client)
				is_bad = tell_forgery(p, way, i) || is_bad;
		tell_way(p, way);
	}
	for (size_t i = STEP_FORWARDED_FOR; i < N_STEPS; i++)
		if (!p->steps[i].skipped && p->steps[i].n_seen == 0)
			printf("  the request with a forged %.*s did not arrive (the gateway answered %u)\n",
				STR_ARG(p->steps[i].header), p->steps[i].status);
	return is_bad ? EXIT_DENY : EXIT_DONE;
}

static int probe(struct probe *p)
{
	int code = fetch_admin("probe", &p->admin, STR("/status"), &p->status);

	if (code != EXIT_DONE)
		return code;
	steps_plan(p);
	code = find_gateway(p);
	if (code != EXIT_DONE)
		return code;
	choose_source(p);
	for (size_t i = 0; i < N_STEPS && code == EXIT_DONE; i++)
		if (!p->steps[i].skipped)
			code = run_step(p, i);
	return code == EXIT_DONE ? tell(p) : code;
}

int verb_probe(int argc, char **argv)
{
	static const struct option long_options[] = {{"admin", required_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};
	const char *admin_z = ADMIN_DEFAULT, *why;
	static struct probe p;
	int id, code;

	while ((id = flags_next("probe", argc, argv, ":", long_options)) != FLAGS_END) {
		if (id != 'a')
			return EXIT_USAGE;
		admin_z = optarg;
	}
	if (optind + 1 != argc)
		return verb_usage_error("probe", "one URL: http://HOST[:PORT]/PATH of the gateway");
	if (!url_parse(&p.url, argv[optind], &why))
		return verb_usage_error("probe", "%s: %s", argv[optind], why);
	code = fetch_admin_address("probe", admin_z, &p.admin);
	if (code == EXIT_DONE)
		code = probe(&p);
	for (size_t i = 0; i < N_STEPS; i++)
		json_free(p.steps[i].root);
	json_free(p.status);
	return code;
}
