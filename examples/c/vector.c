/* Raw open-channel commands: the geometry, a vector write with metadata, the chunk log, a vector read.
 *
 *     cc vector.c $(pkg-config --cflags --libs ocssd) -o vector && ./vector
 */

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTORS 64

/* Ends the program if a call failed: below 0 before it reached the drive, above 0 with the drive's status. */
static void must(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, result < 0 ? ocssd_last_error() : ocssd_status_text((uint16_t)result));
    exit(1);
}

static const char *name_of(uint8_t state)
{
    return state == 1 ? "free" : state == 2 ? "closed" : state == 4 ? "open" : "offline";
}

int main(void)
{
    ocssd_drive *drive = NULL;
    ocssd_geometry geometry;
    ocssd_command command;
    ocssd_completion completion;
    ocssd_chunk chunks[4];
    uint64_t lbas[SECTORS], start = 0, end = 0;
    uint8_t *data, *metadata;
    size_t data_bytes, metadata_bytes;

    must(ocssd_drive_open("westlake", NULL, &drive), "open");
    must(ocssd_drive_geometry(drive, &geometry), "geometry");
    printf("%u groups x %u units x %u chunks x %u sectors of %u bytes; writes are multiples of %u\n", geometry.groups,
           geometry.pus_per_group, geometry.chunks_per_pu, geometry.sectors_per_chunk, geometry.sector_bytes, geometry.ws_min);

    /* The first 64 sectors of chunk 0 of the first unit, each filled with its number; its LBA beside it. */
    data_bytes = (size_t)SECTORS * geometry.sector_bytes;
    metadata_bytes = (size_t)SECTORS * geometry.oob_bytes;
    data = malloc(data_bytes);
    metadata = calloc(1, metadata_bytes);
    if (!data || !metadata)
        return 1;
    /* MW_CUNITS: a sector can be read when so many more were written behind it. */
    for (uint32_t first = 0; first < SECTORS / 2 + geometry.mw_cunits; first += SECTORS) {
        for (uint32_t i = 0; i < SECTORS; i++) {
            ocssd_address address = {0, 0, 0, first + i};

            must(ocssd_address_pack(&geometry, &address, &lbas[i]), "address");
            memset(data + (size_t)i * geometry.sector_bytes, (int)(first + i), geometry.sector_bytes);
            memcpy(metadata + (size_t)i * geometry.oob_bytes, &lbas[i], sizeof lbas[i]);
        }
        must(ocssd_prepare_vector(&command, 0x91, lbas, SECTORS, data, data_bytes), "prepare a write");
        command.metadata = metadata;
        command.metadata_bytes = metadata_bytes;
        must(ocssd_io(drive, &command, &completion), "write");
    }

    must(ocssd_prepare_log_page(&command, 0xca, 1, 0, chunks, sizeof chunks), "prepare the chunk log");
    must(ocssd_admin(drive, &command, &completion), "chunk log");
    for (int i = 0; i < 4; i++)
        printf("chunk %d: %s, written to sector %lld\n", i, name_of(chunks[i].state), (long long)chunks[i].write_pointer);

    /* Backwards, because a vector may name sectors in any order. */
    memset(data, 0, data_bytes);
    for (uint32_t i = 0; i < SECTORS / 2; i++) {
        ocssd_address address = {0, 0, 0, SECTORS / 2 - 1 - i};

        must(ocssd_address_pack(&geometry, &address, &lbas[i]), "address");
    }
    must(ocssd_prepare_vector(&command, 0x92, lbas, SECTORS / 2, data, data_bytes), "prepare a read");
    command.metadata = metadata;
    command.metadata_bytes = metadata_bytes;
    must(ocssd_drive_now(drive, &start), "time");
    must(ocssd_io(drive, &command, &completion), "read");
    must(ocssd_drive_now(drive, &end), "time");
    for (uint32_t i = 0; i < SECTORS / 2; i++)
        if (data[(size_t)i * geometry.sector_bytes] != SECTORS / 2 - 1 - i ||
            memcmp(metadata + (size_t)i * geometry.oob_bytes, &lbas[i], sizeof lbas[i])) {
            fprintf(stderr, "sector %u came back changed\n", i);
            return 1;
        }
    printf("read back %d sectors in %.1f us of the drive's time\n", SECTORS / 2, (double)(end - start) / 1000.0);
    free(data);
    free(metadata);
    must(ocssd_drive_close(&drive), "close");
    return 0;
}
