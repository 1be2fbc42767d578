/* The header by itself, twice, in C11 and C++17. */

#include <ocssd.h>
#include <ocssd.h>

int main(void)
{
    ocssd_command_ended told = 0;

    return ocssd_version()[0] == '\0' || told || sizeof(ocssd_completion) != 16 || OCSSD_QUEUE_IO != 1;
}
