/* What the C tests share: a check that says where it failed, and opening drives. */

#ifndef OCSSD_CHECK_H
#define OCSSD_CHECK_H

#include <errno.h>
#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The expression must have the value. */
#define CHECK(expression, value) check((long long)(expression), (long long)(value), #expression, __FILE__, __LINE__)

static inline void check(long long found, long long expected, const char *what, const char *file, int line)
{
    if (found == expected)
        return;
    fprintf(stderr, "%s:%d: %s is %lld, but should be %lld; last error: %s\n", file, line, what, found, expected,
            ocssd_last_error());
    exit(1);
}

/* The last error must speak of this. */
static inline void check_says(const char *words, int line)
{
    if (strstr(ocssd_last_error(), words))
        return;
    fprintf(stderr, "line %d: the last error should speak of \"%s\", but is \"%s\"\n", line, words,
            ocssd_last_error());
    exit(1);
}

#define CHECK_SAYS(words) check_says(words, __LINE__)

/* A fresh tiny drive: 2 x 2 units of 16 chunks of 32 sectors; ws_min 4, ws_opt 8, mw_cunits 8. */
static inline ocssd_drive *tiny(uint32_t clock)
{
    ocssd_drive_options options = {0};
    ocssd_drive *drive = NULL;

    options.clock = clock;
    CHECK(ocssd_drive_open("tiny", &options, &drive), 0);
    return drive;
}

/* The LBA of a sector. */
static inline uint64_t lba_of(ocssd_drive *drive, uint32_t group, uint32_t pu, uint32_t chunk, uint32_t sector)
{
    ocssd_geometry geometry;
    ocssd_address address = {0};
    uint64_t lba = 0;

    CHECK(ocssd_drive_geometry(drive, &geometry), 0);
    address.group = group;
    address.pu = pu;
    address.chunk = chunk;
    address.sector = sector;
    CHECK(ocssd_address_pack(&geometry, &address, &lba), 0);
    return lba;
}

#endif
