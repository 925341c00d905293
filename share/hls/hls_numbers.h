// Declarations of integers and fixed-point numbers of any width, by which a design is read: the
// extent of the only member is the width. Their arithmetic is that of the built-in integers that
// they convert to.
#pragma once
enum ap_q_mode {
	AP_RND,
	AP_RND_ZERO,
	AP_RND_MIN_INF,
	AP_RND_INF,
	AP_RND_CONV,
	AP_TRN,
	AP_TRN_ZERO
};
enum ap_o_mode { AP_SAT, AP_SAT_ZERO, AP_SAT_SYM, AP_WRAP, AP_WRAP_SM };
template <int W> struct ap_int {
	unsigned char bit_[W];
	ap_int();
	template <class T> ap_int(const T &);
	operator long long() const;
	template <class T> ap_int &operator+=(const T &);
	template <class T> ap_int &operator-=(const T &);
	template <class T> ap_int &operator*=(const T &);
	template <class T> ap_int &operator/=(const T &);
	template <class T> ap_int &operator<<=(const T &);
	template <class T> ap_int &operator>>=(const T &);
	template <class T> ap_int &operator&=(const T &);
	template <class T> ap_int &operator|=(const T &);
	template <class T> ap_int &operator^=(const T &);
	ap_int &operator++();
	ap_int operator++(int);
	ap_int &range(int, int);
	ap_int &operator()(int, int);
	int to_int() const;
	unsigned to_uint() const;
	double to_double() const;
};
template <int W> struct ap_uint {
	unsigned char bit_[W];
	ap_uint();
	template <class T> ap_uint(const T &);
	operator unsigned long long() const;
	template <class T> ap_uint &operator+=(const T &);
	template <class T> ap_uint &operator-=(const T &);
	template <class T> ap_uint &operator*=(const T &);
	template <class T> ap_uint &operator/=(const T &);
	template <class T> ap_uint &operator<<=(const T &);
	template <class T> ap_uint &operator>>=(const T &);
	template <class T> ap_uint &operator&=(const T &);
	template <class T> ap_uint &operator|=(const T &);
	template <class T> ap_uint &operator^=(const T &);
	ap_uint &operator++();
	ap_uint operator++(int);
	ap_uint &range(int, int);
	ap_uint &operator()(int, int);
	int to_int() const;
	unsigned to_uint() const;
	double to_double() const;
};
template <int W, int I, ap_q_mode Q = AP_TRN, ap_o_mode O = AP_WRAP, int N = 0> struct ap_fixed {
	unsigned char bit_[W];
	ap_fixed();
	template <class T> ap_fixed(const T &);
	operator long long() const;
	template <class T> ap_fixed &operator+=(const T &);
	template <class T> ap_fixed &operator-=(const T &);
	template <class T> ap_fixed &operator*=(const T &);
	template <class T> ap_fixed &operator/=(const T &);
	template <class T> ap_fixed &operator<<=(const T &);
	template <class T> ap_fixed &operator>>=(const T &);
	template <class T> ap_fixed &operator&=(const T &);
	template <class T> ap_fixed &operator|=(const T &);
	template <class T> ap_fixed &operator^=(const T &);
	ap_fixed &operator++();
	ap_fixed operator++(int);
	ap_fixed &range(int, int);
	ap_fixed &operator()(int, int);
	int to_int() const;
	unsigned to_uint() const;
	double to_double() const;
};
template <int W, int I, ap_q_mode Q = AP_TRN, ap_o_mode O = AP_WRAP, int N = 0> struct ap_ufixed {
	unsigned char bit_[W];
	ap_ufixed();
	template <class T> ap_ufixed(const T &);
	operator unsigned long long() const;
	template <class T> ap_ufixed &operator+=(const T &);
	template <class T> ap_ufixed &operator-=(const T &);
	template <class T> ap_ufixed &operator*=(const T &);
	template <class T> ap_ufixed &operator/=(const T &);
	template <class T> ap_ufixed &operator<<=(const T &);
	template <class T> ap_ufixed &operator>>=(const T &);
	template <class T> ap_ufixed &operator&=(const T &);
	template <class T> ap_ufixed &operator|=(const T &);
	template <class T> ap_ufixed &operator^=(const T &);
	ap_ufixed &operator++();
	ap_ufixed operator++(int);
	ap_ufixed &range(int, int);
	ap_ufixed &operator()(int, int);
	int to_int() const;
	unsigned to_uint() const;
	double to_double() const;
};
