/* Fourier transforms of 1440 complex numbers by Stockham's method: stages whose radices have the product 1440 (a radix
 * of 1 is no stage). Values: r1 r2 r3 r4 table inner. `table`: factors from a table, or by a recurrence. `inner`: the
 * inner loop goes over the stride (0) or over the blocks (1). */
#include <complex.h>
#include <math.h>

#include "kernel.h"

#define N 1440

typedef double complex number;

static number roots[N], input[N], first[N], second[N], expected[N];

/* Replace a[0..r-1] by its Fourier transform of r numbers. */
static inline void butterfly(int r, number *a) {
  if (r == 2) {
    number x = a[0];
    a[0] = x + a[1];
    a[1] = x - a[1];
  } else if (r == 3) {
    number sum = a[1] + a[2], middle = a[0] - 0.5 * sum, side = -I * 0.86602540378443864676 * (a[1] - a[2]);
    a[0] += sum;
    a[1] = middle + side;
    a[2] = middle - side;
  } else if (r == 4) {
    number even = a[0] + a[2], odd = a[0] - a[2], sum = a[1] + a[3], turned = -I * (a[1] - a[3]);
    a[0] = even + sum;
    a[1] = odd + turned;
    a[2] = even - sum;
    a[3] = odd - turned;
  } else if (r % 2 == 0) {
    number even[16], odd[16];
    int half = r / 2;
    for (int i = 0; i < half; i++) {
      even[i] = a[2 * i];
      odd[i] = a[2 * i + 1];
    }
    butterfly(half, even);
    butterfly(half, odd);
    for (int i = 0; i < half; i++) {
      number turned = odd[i] * roots[i * (N / r)];
      a[i] = even[i] + turned;
      a[i + half] = even[i] - turned;
    }
  } else {
    number result[32];
    for (int k = 0; k < r; k++) {
      result[k] = 0;
      for (int j = 0; j < r; j++) result[k] += a[j] * roots[(j * k % r) * (N / r)];
    }
    for (int k = 0; k < r; k++) a[k] = result[k];
  }
}

static inline void block(int r, int p, int q, int m, int stride, int table, const number *x, number *y) {
  number a[32];
  for (int j = 0; j < r; j++) a[j] = x[q + stride * (p + m * j)];
  butterfly(r, a);
  number step = roots[p * stride], power = 1;
  for (int k = 0; k < r; k++) {
    y[q + stride * (r * p + k)] = a[k] * (table ? roots[p * k * stride % N] : power);
    power *= step;
  }
}

static number *transform(const int *radices, int table, int inner) {
  number *x = first, *y = second;
  memcpy(x, input, sizeof input);
  int n = N, stride = 1;
  for (int stage = 0; stage < 4; stage++) {
    int r = radices[stage], m = n / r;
    if (r == 1) continue;
    if (inner)
      for (int q = 0; q < stride; q++)
        for (int p = 0; p < m; p++) block(r, p, q, m, stride, table, x, y);
    else
      for (int p = 0; p < m; p++)
        for (int q = 0; q < stride; q++) block(r, p, q, m, stride, table, x, y);
    number *swapped = x;
    x = y;
    y = swapped;
    n = m;
    stride *= r;
  }
  return x;
}

int main(void) {
  int v[MOST_VALUES];
  for (int i = 0; i < N; i++) {
    roots[i] = cexp(-2.0 * I * acos(-1.0) * i / N);
    input[i] = (i * 37 % 101) / 101.0 - 0.5 + I * ((i * 53 % 89) / 89.0 - 0.5);
  }
  for (int k = 0; k < N; k++)
    for (int j = 0; j < N; j++) expected[k] += input[j] * roots[j * k % N];
  while (next_configuration(v) == 6) {
    number *found = NULL;
    double began = cpu_ms(), spent = 0;
    int runs = 0;
    for (; spent < LEAST_MS; runs++, spent = cpu_ms() - began) found = transform(v, v[4], v[5]);
    printf("%.5f\n", spent / runs);
    fflush(stdout);
    for (int k = 0; k < N; k++)
      if (cabs(found[k] - expected[k]) > 1e-9) fail("the transform is wrong");
  }
  return 0;
}
