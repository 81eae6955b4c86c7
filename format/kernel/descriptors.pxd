# The functions of descriptors.py in C.
cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE /* for O_NOATIME, where Python did not define it */
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/stat.h>
    #include <unistd.h>
    #ifndef O_NOATIME
    #define O_NOATIME 0
    #endif
    static inline long long kafkalog_size_of_file(const unsigned char *name, int directory_fd) {
        struct stat status;
        if (fstatat(directory_fd, (const char *)name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            return -2;
        return S_ISREG(status.st_mode) ? (long long)status.st_size : -1;
    }
    static inline ssize_t kafkalog_read_log(
            unsigned char *room, size_t length, int directory_fd, long long base_offset) {
        const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
        char name[32];
        ssize_t got;
        int fd;
        snprintf(name, sizeof name, "%020lld.log", base_offset);
        fd = openat(directory_fd, name, flags | O_NOATIME);
        if (fd < 0 && (errno == EPERM || errno == EACCES))
            fd = openat(directory_fd, name, flags);
        if (fd < 0)
            return -1;
        do
            got = pread(fd, room, length, 0);
        while (got < 0 && errno == EINTR);
        close(fd);
        return got;
    }
    """
    long long kafkalog_size_of_file(const unsigned char* name, int directory_fd) noexcept nogil
    Py_ssize_t kafkalog_read_log(unsigned char* room, size_t length, int directory_fd,
                                 long long base_offset) noexcept nogil

cdef enum:
    NAME_DIGITS = 20

cdef inline long long size_of_file(const unsigned char* names, Py_ssize_t at, int directory_fd) noexcept nogil:
    return kafkalog_size_of_file(names + at, directory_fd)

cdef inline Py_ssize_t read_log(unsigned char* room, Py_ssize_t length, int directory_fd,
                                long long base_offset) noexcept nogil:
    return kafkalog_read_log(room, length, directory_fd, base_offset)
