/* ap_wait: a clock boundary in hardware, nothing on the CPU. */
#ifndef ST_AP_UTILS_H
#define ST_AP_UTILS_H

inline void ap_wait()
{
}

inline void ap_wait_n(int)
{
}

#endif
