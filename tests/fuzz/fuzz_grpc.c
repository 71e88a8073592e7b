/* SPDX-License-Identifier: MIT */
/*
 * A connection of HTTP/2 as a peer may write it: behind the preface and SETTINGS any bytes, cut into pieces of any size. What
 * comes out is drained as a socket would, times pass, the server goes away; nothing may be left, and it must come to an end.
 * Input: a byte for the size of the pieces, a byte of switches, then what the peer sends.
 */
#include "fuzz.h"

#include "base/digest.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/log.h"
#include "base/must.h"
#include "server/grpc_session.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

enum { SWITCH_STRANGER = 1, SWITCH_DRAINING = 2, SWITCH_EXPIRE = 4, SWITCH_NO_PREFACE = 8, SWITCH_LEAVE = 16 };

static struct world {
	struct config *config;
	struct store *store;
	struct engine *engine;
	struct loop *loop;
	struct probe_board *probes;
	struct server_counters counters;
	atomic_bool draining;
	struct grpc_service service;
} world;

static void world_make(void)
{
	static const char text[] = "{\"grpc\": {\"message_bytes\": 4096, \"header_bytes\": 2048, \"max_streams\": 5}}";
	const struct config_options options = {0};
	struct fault_list faults;

	json_setup();
	log_setup(LOG_ERROR, LOG_JSON, 2);
	must(digest_init() == ERR_OK);
	fault_list_init(&faults);
	must(config_load_text(&world.config, STR(text), ".", &options, &faults) == ERR_OK);
	fault_list_done(&faults);
	must(store_open(&world.store, STORE_BYTES_MIN) == ERR_OK);
	must(engine_open(&world.engine, &world.config->rules, world.store, 1) == ERR_OK);
	must(loop_new(&world.loop) == ERR_OK);
	must(probe_board_new(&world.probes) == ERR_OK);
	world.service = (struct grpc_service){.config = world.config,
		.loop = world.loop,
		.engine = engine_worker_at(world.engine, 0),
		.counters = &world.counters,
		.draining = &world.draining,
		.probes = world.probes};
	must(grpc_service_init(&world.service) == ERR_OK);
}

static void drain(struct session *s)
{
	const uint8_t *piece;
	size_t n, sum = 0;

	while ((n = session_output(s, &piece)) > 0) {
		sum += n;
		must(sum < (size_t)64 << 20);
	}
}

static bool feed(struct session *s, const uint8_t *data, size_t size, size_t step)
{
	for (size_t at = 0; at < size; at += step) {
		bool ok = session_receive(s, data + at, size - at < step ? size - at : step);

		drain(s);
		if (!ok)
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
	struct peer peer = {.address = STR("unix")};
	struct session *s;
	uint8_t switches;

	if (world.config == NULL)
		world_make();
	if (size < 2)
		return 0;
	switches = data[1];
	peer.is_unix = (switches & SWITCH_STRANGER) == 0; /* callers by default */
	atomic_store(&world.draining, (switches & SWITCH_DRAINING) != 0);
	must(session_open(&s, &world.service, &peer) == ERR_OK);
	if ((switches & SWITCH_NO_PREFACE) == 0) {
		must(feed(s, (const uint8_t *)SESSION_PREFACE, SESSION_PREFACE_BYTES, SESSION_PREFACE_BYTES));
		must(feed(s, settings, sizeof(settings), sizeof(settings)));
	}
	if (feed(s, data + 2, size - 2, 1 + (size_t)data[0] * 8)) {
		session_changed(s);
		if (switches & SWITCH_EXPIRE)
			session_expire(s, UINT64_MAX - 1);
		if (switches & SWITCH_LEAVE) {
			session_notice(s);
			drain(s);
			session_leave(s);
		}
		drain(s);
	}
	session_close(s);
	return 0;
}
