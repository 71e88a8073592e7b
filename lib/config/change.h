/* SPDX-License-Identifier: MIT */
/*
 * change: what a new configuration alters in a running instance.
 *
 * Model      Some settings shape what was built at start: addresses to listen on, threads, sizes of tables and buffers. A new
 *            configuration keeps those as they run, whole, and they are named; all else is taken as it is. The rest is
 *            words for people: what differs, and by name what became of each limit, rule and identity.
 * Units      texts of at most CHANGE_TEXT_BYTES with their NUL.
 * Threads    Pure; both configurations are frozen but for what is kept.
 */
#ifndef POSTERN_CONFIG_CHANGE_H
#define POSTERN_CONFIG_CHANGE_H

#include "config/config.h"

#define CHANGE_TEXT_BYTES 512

struct change {
	char settings_z[CHANGE_TEXT_BYTES];   /* "client, callers, log.level"; "" nothing but what the next three say */
	char limits_z[CHANGE_TEXT_BYTES];     /* "2 kept; changed: login; new: api; dropped: old, slow" */
	char rules_z[CHANGE_TEXT_BYTES];
	char identities_z[CHANGE_TEXT_BYTES]; /* another token is a change */
	char restart_z[CHANGE_TEXT_BYTES];    /* "listen.http, workers": asked for, and not in force before a restart */
};

/* next is not in force yet: whatever cannot change becomes what it is in running. */
void change_settle(struct change *ret, struct config *next, const struct config *running);

#endif
