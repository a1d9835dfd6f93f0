// The same as records.py.
package main

import (
	"fmt"
	"os"
	"strconv"
)

type record struct {
	value int
	other *record
	parts []int
}

func newRecord(value int, other *record) *record {
	return &record{value, other, []int{value}}
}

func main() {
	long, _ := strconv.Atoi(os.Args[1])
	steps, _ := strconv.Atoi(os.Args[2])
	table := make([]*record, long)
	for number := range table {
		table[number] = newRecord(number, nil)
	}
	for number := range table {
		table[number].other = table[(number*7+1)%long]
	}
	state, total := 1, 0
	for step := 0; step < steps; step++ {
		state = (state*1103515245 + 12345) % 2147483648
		place := state / 8 % long
		made := newRecord(step, table[(place+1)%long])
		made.other.other = made
		if step%16 == 0 {
			table[place] = made
		}
		total = (total*31 + made.other.value + len(made.other.other.parts)) % 1000000007
	}
	fmt.Println(total)
}
