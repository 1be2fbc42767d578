// Creates and removes targets of Linux's LightNVM, by the ioctls of /dev/lightnvm/control (include/uapi/linux/lightnvm.h of
// Linux 5.10, which newer headers no longer have). nvme-cli 1.12 can do it too, but refuses a first parallel unit of 0.
//
//   lnvmctl create DEVICE NAME FIRST LAST [OVER_PROVISIONING_PERCENT] [factory]
//   lnvmctl remove NAME
//   lnvmctl devices
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define NAME_BYTES 32   // DISK_NAME_LEN
#define TYPE_BYTES 48   // NVM_TTYPE_NAME_MAX
#define DEVICES_MAX 31  // of struct nvm_ioctl_get_devices
#define MAGIC 'L'
#define EXTENDED 1      // NVM_CONFIG_TYPE_EXTENDED
#define FACTORY 1       // NVM_TARGET_FACTORY
#define DEFAULT_OP 0xffff  // NVM_TARGET_DEFAULT_OP: the target's own over-provisioning

struct create {
    char device[NAME_BYTES];
    char type[TYPE_BYTES];
    char name[NAME_BYTES];
    uint32_t flags;
    uint32_t configuration;
    uint16_t first, last, over_provisioning, reserved;
};

struct removal {
    char name[NAME_BYTES];
    uint32_t flags;
};

struct device {
    char name[NAME_BYTES];
    char manager[TYPE_BYTES];
    uint32_t version[3], flags, reserved[8];
};

struct devices {
    uint32_t count, reserved[31];
    struct device of[DEVICES_MAX];
};

_Static_assert(sizeof(struct create) == 128, "as the kernel has it");
_Static_assert(sizeof(struct removal) == 36, "as the kernel has it");
_Static_assert(sizeof(struct device) == 128 && sizeof(struct devices) == 32 * 128, "as the kernel has it");

#define CREATE _IOW(MAGIC, 0x22, struct create)
#define REMOVE _IOW(MAGIC, 0x23, struct removal)
#define DEVICES _IOR(MAGIC, 0x21, struct devices)

static int control(unsigned long request, void *argument) {
    int file = open("/dev/lightnvm/control", O_RDWR);
    if (file < 0 || ioctl(file, request, argument) < 0) {
        fprintf(stderr, "lnvmctl: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}

static int create(int count, char **words) {
    struct create it = {.configuration = EXTENDED, .over_provisioning = DEFAULT_OP};
    snprintf(it.device, sizeof it.device, "%s", words[0]);
    snprintf(it.type, sizeof it.type, "pblk");
    snprintf(it.name, sizeof it.name, "%s", words[1]);
    it.first = (uint16_t)atoi(words[2]);
    it.last = (uint16_t)atoi(words[3]);
    for (int i = 4; i < count; i++) {
        if (strcmp(words[i], "factory") == 0)
            it.flags = FACTORY;
        else
            it.over_provisioning = (uint16_t)atoi(words[i]);
    }
    return control(CREATE, &it);
}

static int list(void) {
    static struct devices all;
    if (control(DEVICES, &all) != 0)
        return 1;
    for (uint32_t i = 0; i < all.count && i < DEVICES_MAX; i++)
        printf("%s\n", all.of[i].name);
    return 0;
}

int main(int count, char **words) {
    if (count >= 6 && strcmp(words[1], "create") == 0)
        return create(count - 2, words + 2);
    if (count == 3 && strcmp(words[1], "remove") == 0) {
        struct removal it = {.flags = 0};
        snprintf(it.name, sizeof it.name, "%s", words[2]);
        return control(REMOVE, &it);
    }
    if (count == 2 && strcmp(words[1], "devices") == 0)
        return list();
    fprintf(stderr, "usage: lnvmctl create DEVICE NAME FIRST LAST [PERCENT] [factory] | remove NAME | devices\n");
    return 2;
}
