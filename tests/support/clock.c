// Loaded before a command, it shows it another time of day: by FAKE_OFFSET seconds. Clocks that
// count since the machine started are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static int true_time(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) {
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    return real(clock, now);
}

static time_t offset(void) {
    const char *text = getenv("FAKE_OFFSET");
    return text ? (time_t)atoll(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = true_time(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += offset();
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    if (result == 0) {
        now->tv_sec = precise.tv_sec;
        now->tv_usec = precise.tv_nsec / 1000;
    }
    return result;
}

time_t time(time_t *at) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (at) {
        *at = precise.tv_sec;
    }
    return precise.tv_sec;
}
