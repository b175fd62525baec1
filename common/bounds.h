/* SPDX-License-Identifier: GPL-2.0-only */
/* Arithmetic whose bounds the verifier of each kernel follows, the same in user space.
 *
 * The compiler removes a mask that it can prove, and turns one that selects into a branch, of which
 * the verifier follows both sides. So these are instructions that the compiler does not analyse.
 * Kernel 6.1 forgets the bounds of |, ^, << and products unless the constant is the source operand.
 * */
#pragma once

#include <linux/types.h>

#define BOUNDS_INLINE static inline __attribute__((always_inline))

#ifdef __bpf__

/* x & mask, 64 bits; mask: a constant below 2^31. */
#define BOUND(x, mask)                                      \
	({                                                  \
		__u64 bound_ = (x);                         \
		asm("%0 &= %1" : "+r"(bound_) : "i"(mask)); \
		bound_;                                     \
	})

/* x * constant, which the compiler may not know yet; the verifier derives the bounds of the product
 * from the bounds of x. */
#define BOUND_PRODUCT(x, constant)                                       \
	({                                                               \
		__u64 bound_ = (x);                                      \
		asm("%0 *= %1" : "+r"(bound_) : "r"((__u64)(constant))); \
		bound_;                                                  \
	})

/* n, of which the verifier then knows that it is 1 … size; size: a power of two, a constant. Kernel
 * 6.1 does not understand a length after `if (!n)`. */
#define BOUND_LENGTH(n, size) ((__u32)(BOUND((n)-1, (size)-1) + 1))

/* The low 32 bits of x; kernel 6.1 knows no bounds of a product of 32 bits. */
#define BOUND_32(x)                          \
	({                                   \
		__u32 low_ = (__u32)(x);     \
		asm("%0 = %0" : "+w"(low_)); \
		(__u64) low_;                \
	})

/* 0 … n - 1 from 32 bits. The compiler cannot merge its shift with another one, which would lose
 * the bound. */
#define BOUND_SCALE(bits, n)                           \
	({                                             \
		__u64 scale_ = BOUND_PRODUCT(bits, n); \
		asm("%0 >>= 32" : "+r"(scale_));       \
		scale_;                                \
	})

/* x & mask, 64 bits; mask: a constant of which the compiler does not know more than that. A
 * comparison would bound one register only: of a number that the compiler has put aside on the
 * stack, kernel 6.1 forgets it. */
#define BOUND_INDEX(x, mask)                                         \
	({                                                           \
		__u64 bound_ = (x);                                  \
		asm("%0 &= %1" : "+r"(bound_) : "r"((__u64)(mask))); \
		bound_;                                              \
	})

/* x if it is below n, else 0. In one register, for the same reason; n: a constant of which the
 * compiler does not know more. */
#define BOUND_BELOW(x, n)                  \
	({                                 \
		__u64 bound_ = (x);        \
		asm("if %0 < %1 goto +1\n" \
		    "%0 = 0"               \
		    : "+r"(bound_)         \
		    : "r"((__u64)(n)));    \
		bound_;                    \
	})

/* A copy of x that the verifier treats as a different number, so that it follows one state less. */
#define BOUND_FREE(x)                         \
	({                                    \
		__u64 free_ = (x);            \
		asm("%0 ^= 0" : "+r"(free_)); \
		free_;                        \
	})

/* x, of which the verifier knows nothing any more, by way of any y that it does not know: it takes
 * y - y for a number. A constant and a range would be two states to follow. */
#define BOUND_FORGET(x, y)                         \
	({                                         \
		__u64 forgotten_ = (x), y_ = (y);  \
		asm("%1 -= %1\n"                   \
		    "%0 += %1"                     \
		    : "+r"(forgotten_), "+r"(y_)); \
		forgotten_;                        \
	})

/* x, of which the compiler no longer knows where it is from: it makes two shifts and a test of the
 * sign of the comparison of a number of 16 bits. */
#define BOUND_HIDE(x)                    \
	({                               \
		__u64 hidden_ = (x);     \
		asm("" : "+r"(hidden_)); \
		hidden_;                 \
	})

/* x >> (n & 63), which the instruction does by itself. */
#define SHIFT_RIGHT(x, n)                                            \
	({                                                           \
		__u64 shifted_ = (x);                                \
		asm("%0 >>= %1" : "+r"(shifted_) : "r"((__u64)(n))); \
		shifted_;                                            \
	})

/* All ones if the difference of two 32-bit numbers is 0, else 0. */
BOUNDS_INLINE __u64 if_zero32(__u64 difference)
{
	difference--;
	asm("%0 s>>= 63" : "+r"(difference));
	return difference;
}

/* The same for 64 bits. */
BOUNDS_INLINE __u64 if_zero64(__u64 difference)
{
	difference = (difference - 1) & ~difference;
	asm("%0 s>>= 63" : "+r"(difference));
	return difference;
}

/* 1 if the difference is 0, else 0. To be multiplied: newer kernels follow both sides of a mask
 * that is -1 or 0. */
BOUNDS_INLINE __u64 is_zero64(__u64 difference)
{
	difference = (difference - 1) & ~difference;
	asm("%0 >>= 63" : "+r"(difference));
	return difference;
}

/* The same for a difference below 2^63, with fewer instructions. */
BOUNDS_INLINE __u64 is_zero63(__u64 difference)
{
	difference--;
	asm("%0 >>= 63" : "+r"(difference));
	return difference;
}

/* 1 if the difference is not 0, else 0. */
BOUNDS_INLINE __u64 not_zero64(__u64 difference)
{
	difference |= -difference;
	asm("%0 >>= 63" : "+r"(difference));
	return difference;
}

/* 1 if a is less than b, both below 2^63; without a branch, of which the verifier would follow both
 * sides: the compiler is not to know what the bit means. To be multiplied, as is_zero64(). */
BOUNDS_INLINE __u64 is_less(__u64 a, __u64 b)
{
	__u64 difference = a - b;

	asm("%0 >>= 63" : "+r"(difference));
	return difference;
}

#else

#define BOUND(x, mask)             ((__u64)(x) & (mask))
#define BOUND_INDEX(x, mask)       ((__u64)(x) & (mask))
#define BOUND_PRODUCT(x, constant) ((__u64)(x) * (constant))
#define BOUND_BELOW(x, n)          ((__u64)(x) < (n) ? (__u64)(x) : 0)
#define BOUND_32(x)                ((__u64)(__u32)(x))
#define BOUND_SCALE(bits, n)       (BOUND_PRODUCT(bits, n) >> 32)
#define BOUND_FREE(x)              ((__u64)(x))
#define BOUND_FORGET(x, y)         ((__u64)(x))
#define BOUND_HIDE(x)              ((__u64)(x))
#define SHIFT_RIGHT(x, n)          ((__u64)(x) >> ((n)&63))

BOUNDS_INLINE __u64 if_zero32(__u64 difference)
{
	return difference ? 0 : ~0ull;
}

BOUNDS_INLINE __u64 is_less(__u64 a, __u64 b)
{
	return a < b;
}

BOUNDS_INLINE __u64 is_zero64(__u64 difference)
{
	return !difference;
}

BOUNDS_INLINE __u64 is_zero63(__u64 difference)
{
	return !difference;
}

#endif

/* 1 if a is less than b, of any 64 bits: the borrow of a - b. */
BOUNDS_INLINE __u64 is_below(__u64 a, __u64 b)
{
	__u64 borrow = (~a & b) | ((~a | b) & (a - b));

	return BOUND_HIDE(borrow) >> 63;
}
