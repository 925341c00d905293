/*
 * Processes of a dataflow region as fibres of one thread.
 *
 * A region is a list of processes and the channels between them.  A process runs until it has to
 * wait for a channel; the scheduler then resumes the process that became ready first, so every
 * run of a region is the same.  A process waits on one channel at a time and is woken by that
 * channel's other end.  When all remaining processes wait, the region ends with the cycle of waits
 * as its error.
 *
 * After a region the calling thread can ask for its outcome:
 *   st_region_error()       NULL, or what went wrong since this was asked last
 *   st_region_fifos()       number of channels
 *   st_region_fifo(i, ...)  name, depth and the most elements that channel i ever held
 */
#ifndef ST_FIBRE_H
#define ST_FIBRE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

/* Address space per process; pages are only committed when touched. */
#ifndef ST_STACK_BYTES
#define ST_STACK_BYTES ((std::size_t)64 << 20)
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

/*
 * st_fibre_switch(from, to): saves the callee-saved registers on this stack and its pointer in
 * *from, then continues on the stack `to`.  Unlike swapcontext it makes no system call.
 */
#if defined(__x86_64__) && !defined(ST_FIBRE_UCONTEXT)
extern "C" void st_fibre_switch(void **from, void *to);
asm(".pushsection .text.st_fibre_switch,\"axG\",@progbits,st_fibre_switch,comdat\n"
    ".weak st_fibre_switch\n"
    ".hidden st_fibre_switch\n"
    ".type st_fibre_switch,@function\n"
    "st_fibre_switch:\n"
    "	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq "
    "%r15\n"
    "	movq %rsp, (%rdi)\n"
    "	movq %rsi, %rsp\n"
    "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
    "	ret\n"
    ".size st_fibre_switch,.-st_fibre_switch\n"
    ".popsection\n");
/* six registers, the entry, and a word that keeps the stack aligned */
#define ST_FIBRE_FRAME_WORDS 8
#define ST_FIBRE_ENTRY_WORD 6
#elif defined(__aarch64__) && !defined(ST_FIBRE_UCONTEXT)
extern "C" void st_fibre_switch(void **from, void *to);
asm(".pushsection .text.st_fibre_switch,\"axG\",@progbits,st_fibre_switch,comdat\n"
    ".weak st_fibre_switch\n"
    ".hidden st_fibre_switch\n"
    ".type st_fibre_switch,%function\n"
    "st_fibre_switch:\n"
    "	sub sp, sp, #160\n"
    "	stp x19, x20, [sp, #0]\n	stp x21, x22, [sp, #16]\n	stp x23, x24, [sp, #32]\n"
    "	stp x25, x26, [sp, #48]\n	stp x27, x28, [sp, #64]\n	stp x29, x30, [sp, #80]\n"
    "	stp d8, d9, [sp, #96]\n	stp d10, d11, [sp, #112]\n	stp d12, d13, [sp, #128]\n"
    "	stp d14, d15, [sp, #144]\n"
    "	mov x9, sp\n	str x9, [x0]\n	mov sp, x1\n"
    "	ldp x19, x20, [sp, #0]\n	ldp x21, x22, [sp, #16]\n	ldp x23, x24, [sp, #32]\n"
    "	ldp x25, x26, [sp, #48]\n	ldp x27, x28, [sp, #64]\n	ldp x29, x30, [sp, #80]\n"
    "	ldp d8, d9, [sp, #96]\n	ldp d10, d11, [sp, #112]\n	ldp d12, d13, [sp, #128]\n"
    "	ldp d14, d15, [sp, #144]\n"
    "	add sp, sp, #160\n"
    "	ret\n"
    ".size st_fibre_switch,.-st_fibre_switch\n"
    ".popsection\n");
#define ST_FIBRE_FRAME_WORDS 20
#define ST_FIBRE_ENTRY_WORD 11
#else
#include <ucontext.h>
#ifndef ST_FIBRE_UCONTEXT
#define ST_FIBRE_UCONTEXT
#endif
#endif

namespace st
{

struct channel;
class region;

/* One process of the region. */
struct fibre {
	const char *name;
	void (*run)(void *);      /* calls the process */
	void *call;               /* its arguments: a closure made by region::spawn */
	void (*release)(void *);  /* frees the closure */
	void *stack = nullptr;    /* mapping of ST_STACK_BYTES, lowest page inaccessible */
	void *resume = nullptr;   /* saved stack pointer */
	channel *waits = nullptr; /* what it waits for; null while ready or done */
	bool waits_full = false;  /* for space, not for data */
	bool done = false;
	fibre *next = nullptr; /* queue of ready processes */
#ifdef ST_FIBRE_UCONTEXT
	ucontext_t context;
#endif
};

/* What every FIFO is: counters of elements written and read, and who waits. */
struct channel {
	std::uint64_t written = 0;
	std::uint64_t taken = 0;
	std::uint64_t depth;
	bool of_blocks;                             /* not of words */
	std::uint64_t most = 0;                     /* high-water mark */
	fibre *reader = nullptr;                    /* waits for data */
	fibre *writer = nullptr;                    /* waits for space */
	const fibre *end[2] = { nullptr, nullptr }; /* the processes it was passed to */
	std::string name;
	channel *older; /* list of this thread's channels */
	region &home;

	inline channel(const char *title, std::uint64_t elements, bool holds_blocks = false);
	inline ~channel();
	channel(const channel &) = delete;
	channel &operator=(const channel &) = delete;

	/* Returns true once there is an element to take; false when there never will be. */
	bool await_data()
	{
		return __builtin_expect(written != taken, 1) || wait(false);
	}

	bool await_room()
	{
		return __builtin_expect(written - taken < depth, 1) || wait(true);
	}

	void took()
	{
		++taken;
		if (__builtin_expect(writer != nullptr, 0))
			wake(writer);
	}

	void wrote()
	{
		std::uint64_t held = ++written - taken;

		most = held > most ? held : most;
		if (__builtin_expect(reader != nullptr, 0))
			wake(reader);
	}

	bool wait(bool for_room);
	void wake(fibre *&sleeper);
};

struct mark {
	std::string name;
	std::uint64_t depth;
	std::uint64_t most;
};

/* The region being built or run by this thread, and the outcome of the last one. */
class region
{
      public:
	static region &here()
	{
		static thread_local region instance;
		return instance;
	}

	template <class Call, class... Args> void spawn(const char *name, Call call, Args &...args)
	{
		Call *copy = new Call(std::move(call));
		fibre *process = new fibre();

		if (processes.empty() && asked)
			error.clear();
		asked = false;
		process->name = name;
		process->call = copy;
		process->run = [](void *closure) { (*static_cast<Call *>(closure))(); };
		process->release = [](void *closure) { delete static_cast<Call *>(closure); };
		processes.push_back(process);
		int attached[] = { 0, (attach(process, args), 0)... };
		(void)attached;
	}

	/* Runs all processes to their end, or until none can run. */
	void finish()
	{
		if (prepare())
			switch_away(nullptr);
		if (error.empty() && done != processes.size())
			report_deadlock();
		if (error.empty())
			report_leftovers();
		record_marks();
		clear();
	}

	void fail(const std::string &what)
	{
		if (error.empty())
			error = what;
	}

	/* empty: the last region succeeded, and those before it since the error was asked for */
	std::string error;
	bool asked = true;       /* it was */
	std::vector<mark> marks; /* of the last region */
	channel *channels = nullptr;
	fibre *running = nullptr;

	/* Leaves the running process (or the caller, when `from` is null) for the next ready
	 * one. */
	void switch_away(fibre *from)
	{
		fibre *next = first;

		if (next != nullptr)
			first = next->next;
		else if (from == nullptr)
			return;
		running = next;
		transfer(from, next);
		running = from;
	}

	void make_ready(fibre *process)
	{
		process->next = nullptr;
		*(first == nullptr ? &first : &last->next) = process;
		last = process;
	}

      private:
	std::vector<fibre *> processes;
	fibre *first = nullptr, *last = nullptr; /* queue of ready processes */
	std::size_t done = 0;
	fibre caller = fibre(); /* the thread's own stack */

	static void attach_channel(fibre *process, channel &end)
	{
		if (end.end[0] == nullptr)
			end.end[0] = process;
		else if (end.end[0] != process)
			end.end[1] = process;
	}

	template <class T> static void attach(fibre *process, T &argument)
	{
		attach(process, argument, std::is_base_of<channel, T>());
	}

	template <class T> static void attach(fibre *process, T &argument, std::true_type)
	{
		attach_channel(process, argument);
	}

	template <class T> static void attach(fibre *, T &, std::false_type)
	{
	}

	template <class T, std::size_t N> static void attach(fibre *process, T (&arguments)[N])
	{
		for (T &argument : arguments)
			attach(process, argument);
	}

	static void entry()
	{
		region &self = here();
		fibre *process = self.running;

		arrived(process);
		process->run(process->call);
		process->done = true;
		++self.done;
		self.switch_away(process);
	}

	bool prepare()
	{
		for (channel *c = channels; c != nullptr; c = c->older)
			c->most = c->written - c->taken;
		first = last = nullptr;
		done = 0;
		for (fibre *process : processes) {
			if (!give_stack(process)) {
				fail("out of address space for the stacks of " +
				        std::to_string(processes.size()) + " processes of " +
				        std::to_string(ST_STACK_BYTES) + " bytes");
				return false;
			}
			make_ready(process);
		}
		return !processes.empty();
	}

	bool give_stack(fibre *process)
	{
		void *stack = mmap(nullptr, ST_STACK_BYTES, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (stack == MAP_FAILED)
			return false;
		process->stack = stack;
		if (mprotect(stack, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE) !=
		        0)
			return false;
		start_frame(process);
		return true;
	}

#ifdef ST_FIBRE_UCONTEXT
	static void start_frame(fibre *process)
	{
		getcontext(&process->context);
		process->context.uc_stack.ss_sp = process->stack;
		process->context.uc_stack.ss_size = ST_STACK_BYTES;
		process->context.uc_link = nullptr;
		makecontext(&process->context, entry, 0);
	}

	static void exchange(fibre *from, fibre *to)
	{
		swapcontext(&from->context, &to->context);
	}
#else
	static void start_frame(fibre *process)
	{
		void **top = reinterpret_cast<void **>(
		        static_cast<char *>(process->stack) + ST_STACK_BYTES);

		top -= ST_FIBRE_FRAME_WORDS;
		top[ST_FIBRE_ENTRY_WORD] = reinterpret_cast<void *>(&entry);
		process->resume = top;
	}

	static void exchange(fibre *from, fibre *to)
	{
		st_fibre_switch(&from->resume, to->resume);
	}
#endif

#ifdef __SANITIZE_ADDRESS__
	const void *caller_stack = nullptr;
	std::size_t caller_bytes = 0;

	static void arrived(fibre *process)
	{
		region &self = here();
		const void *bottom;
		std::size_t bytes;

		(void)process;
		__sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
		if (self.caller_stack == nullptr) {
			self.caller_stack = bottom;
			self.caller_bytes = bytes;
		}
	}

	void transfer(fibre *from, fibre *next)
	{
		void *fake = nullptr;

		void **saved = from != nullptr && from->done ? nullptr : &fake;
		const void *stack = next ? next->stack : caller_stack;
		std::size_t bytes = next ? ST_STACK_BYTES : caller_bytes;
		fibre *entered = next ? next : &caller;

		__sanitizer_start_switch_fiber(saved, stack, bytes);
		exchange(from ? from : &caller, entered);
		__sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
	}
#else
	static void arrived(fibre *)
	{
	}

	void transfer(fibre *from, fibre *next)
	{
		fibre *entered = next ? next : &caller;

		exchange(from ? from : &caller, entered);
	}
#endif

	/* The process at the other end of the channel that `process` waits for. */
	static const fibre *peer(const fibre *process)
	{
		const channel *c = process->waits;

		return c->end[0] == process ? c->end[1] : c->end[0];
	}

	/* In the words of the compiler's simulators, so that the same deadlock reads the same. */
	static std::string describe(const fibre *process)
	{
		const channel *c = process->waits;

		const char *what = c->of_blocks ? "a block of " : "a word of ";

		return std::string(process->name) + " waits for " +
		        (process->waits_full ? "space in " : what) + c->name + " (" +
		        (process->waits_full ? "full" : "empty") + ", depth " +
		        std::to_string(c->depth) + ")";
	}

	/* The first process of the cycle in which the chain of waits closes, or the last one
	 * that still waits. */
	const fibre *end_of_chain(const fibre *process) const
	{
		for (std::size_t i = 0; i < processes.size(); i++) {
			const fibre *next = peer(process);

			if (next == nullptr || next->done)
				return process;
			process = next;
		}
		for (const fibre *lowest : processes) {
			const fibre *p = process;

			do {
				if (p == lowest)
					return lowest;
				p = peer(p);
			} while (p != process);
		}
		return process;
	}

	const fibre *first_stuck() const
	{
		for (const fibre *p : processes)
			if (!p->done)
				return p;
		return nullptr;
	}

	void report_deadlock()
	{
		const fibre *start = end_of_chain(first_stuck()), *p = start, *next;
		std::vector<const fibre *> told;
		std::string others;

		error = "deadlock: ";
		do {
			error += (p == start ? "" : "; ") + describe(p);
			told.push_back(p);
			next = peer(p);
			p = next;
		} while (next != nullptr && !next->done && next != start);
		if (next == nullptr || next->done)
			error += std::string(", whose other end ") +
			        (next == nullptr ? "does not exist" : "has ended");
		for (const fibre *q : processes) {
			bool listed = q->done;

			for (const fibre *r : told)
				listed = listed || q == r;
			others += listed ? "" : "\n  " + describe(q);
		}
		error += "\n" + std::to_string(processes.size() - done) + " of " +
		        std::to_string(processes.size()) + " processes wait" +
		        (others.empty() ? "" : ", also:" + others) + "\n";
	}

	void report_leftovers()
	{
		std::string text;

		for (channel *c = channels; c != nullptr; c = c->older)
			if (c->written != c->taken)
				text = "  " + c->name + " holds " +
				        std::to_string(c->written - c->taken) + "\n" + text;
		if (!text.empty())
			error = "data left in channels at the end of the region:\n" + text;
	}

	void record_marks()
	{
		marks.clear();
		for (channel *c = channels; c != nullptr; c = c->older)
			marks.insert(marks.begin(), mark{ c->name, c->depth, c->most });
	}

	void clear()
	{
		for (channel *c = channels; c != nullptr; c = c->older) {
			c->reader = c->writer = nullptr;
			c->end[0] = c->end[1] = nullptr;
		}
		for (fibre *process : processes) {
			process->release(process->call);
			if (process->stack != nullptr)
				munmap(process->stack, ST_STACK_BYTES);
			delete process;
		}
		processes.clear();
	}
};

inline channel::channel(const char *title, std::uint64_t elements, bool holds_blocks)
    : depth(elements), of_blocks(holds_blocks), name(title), older(region::here().channels),
      home(region::here())
{
	home.channels = this;
}

inline channel::~channel()
{
	for (channel **link = &home.channels; *link != nullptr; link = &(*link)->older)
		if (*link == this) {
			*link = older;
			return;
		}
}

__attribute__((noinline)) inline bool channel::wait(bool for_room)
{
	region &self = home;
	fibre *process = self.running;
	fibre *&seat = for_room ? writer : reader;

	if (process == nullptr) {
		self.fail(name + (for_room ? " is written while full" : " is read while empty") +
		        " outside any process");
		return false;
	}
	seat = process;
	process->waits = this;
	process->waits_full = for_room;
	self.switch_away(process);
	return true;
}

__attribute__((noinline)) inline void channel::wake(fibre *&sleeper)
{
	fibre *process = sleeper;

	sleeper = nullptr;
	process->waits = nullptr;
	home.make_ready(process);
}

} // namespace st

extern "C" {

__attribute__((used, visibility("default"))) inline const char *st_region_error(void)
{
	const std::string &error = st::region::here().error;

	st::region::here().asked = true;
	return error.empty() ? nullptr : error.c_str();
}

__attribute__((used, visibility("default"))) inline unsigned long st_region_fifos(void)
{
	return st::region::here().marks.size();
}

/* 0, or -1 when there is no such channel. */
__attribute__((used, visibility("default"))) inline int st_region_fifo(
        unsigned long index, const char **name, unsigned long *depth, unsigned long *most)
{
	const std::vector<st::mark> &marks = st::region::here().marks;

	if (index >= marks.size())
		return -1;
	*name = marks[index].name.c_str();
	*depth = marks[index].depth;
	*most = marks[index].most;
	return 0;
}
}

#define ST_PROCESS(f, ...) st::region::here().spawn(#f, [&] { f(__VA_ARGS__); }, __VA_ARGS__)
#define ST_REGION_END() st::region::here().finish()
#define ST_NAMED(name) (name)

#endif
