"""Records that link to each other: some live long, most die young. Prints a sum that each language must find."""

import sys

LONG, STEPS = int(sys.argv[1]), int(sys.argv[2])


class Record:
    """A number, another record, and a list."""

    def __init__(self, value, other):
        self.value = value
        self.other = other
        self.parts = [value]


def main():
    """Make the records, and print the sum."""
    table = [Record(number, None) for number in range(LONG)]
    for number in range(LONG):
        table[number].other = table[(number * 7 + 1) % LONG]
    state, total = 1, 0
    for step in range(STEPS):
        state = (state * 1103515245 + 12345) % 2147483648
        place = state // 8 % LONG
        record = Record(step, table[(place + 1) % LONG])
        record.other.other = record  # a cycle
        if step % 16 == 0:
            table[place] = record
        total = (total * 31 + record.other.value + len(record.other.other.parts)) % 1000000007
    print(total)


main()
