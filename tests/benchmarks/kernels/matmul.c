/* The product of two matrices in blocks of bm x bk and bk x bn, `unroll` rows at once, with or without a copy of B's
 * block. Values: bm bn bk unroll pack. */
#include "kernel.h"

#define N 192

static double a[N][N], b[N][N], c[N][N], packed[N * N], expected[N][N];

#define ROWS(U)                                                                        \
  static void rows_##U(int i, int j, int k, int bn, int bk, const double *from, int stride) { \
    for (int p = 0; p < bk; p++) {                                                     \
      const double *row = from + (size_t)p * stride;                                   \
      double left[U];                                                                           \
      for (int u = 0; u < U; u++) left[u] = a[i + u][k + p];                           \
      for (int q = 0; q < bn; q++) {                                                   \
        double right = row[q];                                                         \
        for (int u = 0; u < U; u++) c[i + u][j + q] += left[u] * right;                \
      }                                                                                \
    }                                                                                  \
  }
ROWS(1)
ROWS(2)
ROWS(4)

static void multiply(int bm, int bn, int bk, int unroll, int pack) {
  memset(c, 0, sizeof c);
  for (int k = 0; k < N; k += bk)
    for (int j = 0; j < N; j += bn) {
      const double *from = &b[k][j];
      int stride = N;
      if (pack) {
        for (int p = 0; p < bk; p++) memcpy(packed + (size_t)p * bn, &b[k + p][j], bn * sizeof(double));
        from = packed;
        stride = bn;
      }
      for (int start = 0; start < N; start += bm)
        for (int i = start; i < start + bm; i += unroll) {
          if (unroll == 1) rows_1(i, j, k, bn, bk, from, stride);
          else if (unroll == 2) rows_2(i, j, k, bn, bk, from, stride);
          else rows_4(i, j, k, bn, bk, from, stride);
        }
    }
}

int main(void) {
  int v[MOST_VALUES];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      a[i][j] = (i * 7 + j * 3) % 11 - 5;
      b[i][j] = (i * 5 + j * 13) % 17 - 8;
    }
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      for (int j = 0; j < N; j++) expected[i][j] += a[i][k] * b[k][j];
  while (next_configuration(v) == 5) {
    double began = cpu_ms(), spent = 0;
    int runs = 0;
    for (; spent < LEAST_MS; runs++, spent = cpu_ms() - began) multiply(v[0], v[1], v[2], v[3], v[4]);
    printf("%.5f\n", spent / runs);
    fflush(stdout);
    if (memcmp(c, expected, sizeof c)) fail("the product is wrong");
  }
  return 0;
}
