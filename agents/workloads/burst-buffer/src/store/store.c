/* The store's start and end. */

#include "internal.h"

void store_start(int buffer)
{
    struct stat found;
    if (stat(settings.directory, &found) != 0)
        die("see %s", settings.directory);
    make_file_table(found.st_dev);
    make_levels();
    make_file_level(buffer, found.st_dev);
    start_destagers();
}

bool store_end(void)
{
    bool all = sync_all_files();
    end_destagers(!all);
    if (all) {
        forget_all_files();
        remove_file_level();
    }
    return all;
}
