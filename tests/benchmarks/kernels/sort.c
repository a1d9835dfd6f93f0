/* Sort 100 lists of 192 integers of 64 bits; a third of the integers is small, and a tenth of each list is in order. Values: algorithm cutoff small pivot partition
 * ways bits skip. `algorithm`: 0 quicksort (pivot, partition), 1 merge sort (ways), 2 radix sort (bits, skip). `small`:
 * how parts of at most `cutoff` are sorted: 0 insertion, 1 binary insertion, 2 Shell's sort. Values that an algorithm
 * does not use are ignored. */
#include <stdint.h>

#include "kernel.h"

#define N 192
#define LISTS 100

static uint64_t input[LISTS][N], sorted[LISTS][N], expected[LISTS][N], spare[N];
static int cutoff, small, pivot_rule, partition_rule, ways, bits, skip;

static void insertion(uint64_t *a, int n, int gap) {
  for (int i = gap; i < n; i++) {
    uint64_t one = a[i];
    int j = i;
    for (; j >= gap && a[j - gap] > one; j -= gap) a[j] = a[j - gap];
    a[j] = one;
  }
}

static void sort_small(uint64_t *a, int n) {
  static const int gaps[] = {57, 23, 10, 4, 1};
  if (small == 0) insertion(a, n, 1);
  else if (small == 2) {
    for (int i = 0; i < 5; i++)
      if (gaps[i] < n || gaps[i] == 1) insertion(a, n, gaps[i]);
  } else {
    for (int i = 1; i < n; i++) {
      uint64_t one = a[i];
      int low = 0, high = i;
      while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= one) low = middle + 1;
        else high = middle;
      }
      memmove(a + low + 1, a + low, (size_t)(i - low) * sizeof *a);
      a[low] = one;
    }
  }
}

static uint64_t median(uint64_t x, uint64_t y, uint64_t z) {
  if (x < y) return y < z ? y : (x < z ? z : x);
  return x < z ? x : (y < z ? z : y);
}

static uint64_t pivot_of(const uint64_t *a, int n) {
  int middle = n / 2, eighth = n / 8;
  if (pivot_rule == 0) return a[0];
  if (pivot_rule == 1 || n < 9) return a[middle];
  if (pivot_rule == 2) return median(a[0], a[middle], a[n - 1]);
  return median(median(a[0], a[eighth], a[2 * eighth]), median(a[middle - eighth], a[middle], a[middle + eighth]),
                median(a[n - 1 - 2 * eighth], a[n - 1 - eighth], a[n - 1]));
}

static void swap(uint64_t *x, uint64_t *y) {
  uint64_t one = *x;
  *x = *y;
  *y = one;
}

static void quick(uint64_t *a, int n) {
  while (n > cutoff && n > 1) {
    uint64_t pivot = pivot_of(a, n);
    int left = 0, right = n - 1; /* Parts of the result: up to `right`, and from `left` on. */
    if (partition_rule == 0) {
      while (left <= right) {
        while (a[left] < pivot) left++;
        while (a[right] > pivot) right--;
        if (left <= right) swap(&a[left++], &a[right--]);
      }
    } else {
      int i = 0, above = n;
      int below = 0;
      while (i < above) {
        if (a[i] < pivot) swap(&a[below++], &a[i++]);
        else if (a[i] > pivot) swap(&a[i], &a[--above]);
        else i++;
      }
      right = below - 1;
      left = above;
    }
    if (right + 1 < n - left) {
      quick(a, right + 1);
      a += left;
      n -= left;
    } else {
      quick(a + left, n - left);
      n = right + 1;
    }
  }
  if (n > 1) sort_small(a, n);
}

static void merge(uint64_t *a, uint64_t *to, int n) {
  if (n <= cutoff || n <= ways) {
    if (n > 1) sort_small(a, n);
    return;
  }
  int starts[17];
  for (int i = 0; i <= ways; i++) starts[i] = (int)((int64_t)n * i / ways);
  int next[16];
  for (int i = 0; i < ways; i++) {
    merge(a + starts[i], to + starts[i], starts[i + 1] - starts[i]);
    next[i] = starts[i];
  }
  for (int place = 0; place < n; place++) {
    int least = -1;
    for (int i = 0; i < ways; i++)
      if (next[i] < starts[i + 1] && (least < 0 || a[next[i]] < a[next[least]])) least = i;
    to[place] = a[next[least]++];
  }
  memcpy(a, to, (size_t)n * sizeof *a);
}

static void radix(uint64_t *data) {
  static int counts[1 << 16];
  uint64_t *x = data, *y = spare, all = 0;
  if (skip)
    for (int i = 0; i < N; i++) all |= x[i];
  else all = UINT64_MAX;
  for (int shift = 0; shift < 64 && all >> shift; shift += bits) {
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    memset(counts, 0, sizeof *counts << bits);
    for (int i = 0; i < N; i++) counts[x[i] >> shift & mask]++;
    for (uint64_t digit = 0, sum = 0; digit <= mask; digit++) {
      int count = counts[digit];
      counts[digit] = (int)sum;
      sum += (uint64_t)count;
    }
    for (int i = 0; i < N; i++) y[counts[x[i] >> shift & mask]++] = x[i];
    uint64_t *swapped = x;
    x = y;
    y = swapped;
  }
  if (x != data) memcpy(data, x, N * sizeof *data);
}

static int compare(const void *x, const void *y) {
  uint64_t left = *(const uint64_t *)x, right = *(const uint64_t *)y;
  return (left > right) - (left < right);
}

int main(void) {
  int v[MOST_VALUES];
  uint64_t state = 12345;
  for (int list = 0; list < LISTS; list++) {
    for (int i = 0; i < N; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      input[list][i] = i % 3 ? state ^ state >> 29 : (state >> 40) % 300;
    }
    for (int i = 1; i < N / 10; i++) input[list][i] = (uint64_t)i << 40;
    memcpy(expected[list], input[list], sizeof input[list]);
    qsort(expected[list], N, sizeof *expected[list], compare);
  }
  while (next_configuration(v) == 8) {
    cutoff = v[1], small = v[2], pivot_rule = v[3], partition_rule = v[4], ways = v[5], bits = v[6], skip = v[7];
    double spent = 0;
    int runs = 0;
    for (; spent < LEAST_MS; runs++) {
      memcpy(sorted, input, sizeof input);
      double began = cpu_ms();
      for (int list = 0; list < LISTS; list++) {
        if (v[0] == 0) quick(sorted[list], N);
        else if (v[0] == 1) merge(sorted[list], spare, N);
        else radix(sorted[list]);
      }
      spent += cpu_ms() - began;
    }
    printf("%.5f\n", spent / runs);
    fflush(stdout);
    if (memcmp(sorted, expected, sizeof sorted)) fail("the numbers are not sorted");
  }
  return 0;
}
