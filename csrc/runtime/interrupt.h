// Ending a program that runs long: the host is asked now and then whether it wants that.
#pragma once

namespace weft::interrupt {

// Called on every thread that runs a program, some twenty times a second; throws to end the
// program. Null: nobody is asked.
using Check = void (*)();
void set_check(Check check) noexcept;

// Asks the host if its time has come on this thread. Costs a look at the clock.
void poll();

// What the interpreter's steps cost; it polls when a credit is used up. Operators weigh most:
// a hundred of them may take a second.
inline constexpr int kCredit = 1024;
inline constexpr int kOperatorCost = 128;

}  // namespace weft::interrupt
