# The same as records.py.
LONG, STEPS = ARGV.map(&:to_i)

class Record
  attr_accessor :value, :other, :parts

  def initialize(value, other)
    @value = value
    @other = other
    @parts = [value]
  end
end

table = Array.new(LONG) { |number| Record.new(number, nil) }
LONG.times { |number| table[number].other = table[(number * 7 + 1) % LONG] }
state = 1
total = 0
STEPS.times do |step|
  state = (state * 1103515245 + 12345) % 2147483648
  place = state / 8 % LONG
  record = Record.new(step, table[(place + 1) % LONG])
  record.other.other = record
  table[place] = record if step % 16 == 0
  total = (total * 31 + record.other.value + record.other.other.parts.length) % 1000000007
end
puts total
