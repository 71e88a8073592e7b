/* SPDX-License-Identifier: MIT */
/*
 * check_scan: reads a /check question of the usual shape without building a tree. A short cut, never a judge.
 *
 * Model      Taken is one object of known members, each at most once: strings of printable ASCII without escapes, headers
 *            as an object of such strings, a plain cost, true or false. Whatever is taken, json_read and check_read take
 *            too and give an equal request. Everything else, faults included, is theirs to judge.
 * Ownership  The request's slices lead into body, only the header lines lie in the arena.
 * Threads    Pure.
 * Errors     false: not taken, *ret is as it was; the arena may be overflown.
 * Limits     16 header lines.
 */
#ifndef POSTERN_ADAPTER_CHECK_SCAN_H
#define POSTERN_ADAPTER_CHECK_SCAN_H

#include "base/arena.h"
#include "core/request.h"

/* ret holds defaults already and is completed. */
bool check_scan(struct str body, struct arena *a, struct request *ret);

#endif
