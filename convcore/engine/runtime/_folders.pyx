"""Folders on the disk, in one step: Ctrl-C comes before or after it, and no descriptor is left."""

cdef extern from *:
    """
    #ifdef _WIN32
    static void convcore_sync_folder(const char *path) { (void)path; }
    #else
    #include <fcntl.h>
    #include <unistd.h>
    static void convcore_sync_folder(const char *path) {
        int folder = open(path, O_RDONLY | O_CLOEXEC);
        if (folder < 0) return;
        (void)fsync(folder);
        (void)close(folder);
    }
    #endif
    """
    void convcore_sync_folder(const char *path) noexcept nogil


def sync_folder(bytes path not None):
    """Wait until a folder's entries are on the disk, where the system and the folder allow it."""
    cdef const char *name = path
    with nogil:
        convcore_sync_folder(name)
