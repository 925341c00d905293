/* The command line: arguments to a session, its texts to the terminal.  Exit 0; 1 for input,
 * options or the machine; 70 for a bug of ours. */
#define _XOPEN_SOURCE 700
#include "base/cxx_border.h"
#include "driver/command_line.h"
#include "pipeline/session.h"
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RETAINED_BYTES (256 << 20)

static struct session *running;

static void on_signal(int number)
{
	(void)number;
	running->stop = 1;
}

static void on_stage(void *user, const char *name)
{
	(void)user;
	fprintf(stderr, "stage %s\n", name);
}

static bool told;

/* One line that is written again. */
static void on_progress(void *user, const char *what, int percent)
{
	(void)user;
	fprintf(stderr, "\r%s %3d %%", what, percent);
	fflush(stderr);
	told = true;
}

static struct {
	int count;
	char **arguments;
	const struct command *command;
} line;

static bool parse(struct session *session)
{
	return options_parse(session->arena, &session->diag, line.count, line.arguments,
	        &session->options, &line.command);
}

static bool work(struct session *session)
{
	if (session->options.version)
		version_text(&session->out);
	else if (session->options.help)
		options_help(&session->out, line.command, session->options.help_expert);
	else
		return line.command->run(session);
	return true;
}

static bool print(struct session *session)
{
	struct text messages = text_new(session->arena);
	if (session_messages(session, &messages))
		fwrite(messages.data, 1, messages.size, stderr);
	if (session->out.data)
		fwrite(session->out.data, 1, session->out.size, stdout);
	return true;
}

/* The signal itself follows if the handler returns. */
static void on_abort(int number)
{
	cxx_aborted();
	signal(number, SIG_DFL);
}

static void on_crash(int number)
{
	cxx_crashed();
	signal(number, SIG_DFL);
}

static void catch_signals(void)
{
	/* all that would end the program at once and leave its folder */
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGVTALRM,
		SIGPROF, SIGUSR1, SIGUSR2, SIGPOLL };
	struct sigaction action = { .sa_handler = on_signal };
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		sigaction(ends[i], &action, NULL);
	struct sigaction aborted = { .sa_handler = on_abort, .sa_flags = SA_NODEFER };
	sigaction(SIGABRT, &aborted, NULL);
	static char stack[1 << 16]; /* the other may be what is exhausted */
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction crashed = { .sa_handler = on_crash, .sa_flags = SA_NODEFER | SA_ONSTACK };
	if (!sigaltstack(&other, NULL))
		sigaction(SIGSEGV, &crashed, NULL);
	/* what is written then fails, with a message */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* As behind `| head`: it has what it wanted. */
static bool reader_left(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };
	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* Arenas of attempts come and go: what one gives back the next one takes, without the system
 * clearing its pages again. */
static void keep_memory(void)
{
	mallopt(M_TRIM_THRESHOLD, RETAINED_BYTES);
	mallopt(M_MMAP_THRESHOLD, RETAINED_BYTES);
}

int main(int count, char **arguments)
{
	keep_memory();
	struct session *session = running = session_new();
	if (!session) {
		fputs("stc: error: out of memory\n", stderr);
		return STC_REFUSED;
	}
	catch_signals();
	line.count = count;
	line.arguments = arguments;
	enum stc_status status = session_guarded(session, parse);
	if (session->options.progress)
		session->on_stage = on_stage;
	if (session->options.progress || isatty(STDERR_FILENO))
		session->on_progress = on_progress;
	if (status == STC_OK)
		status = session_guarded(session, work);
	if (told)
		fputs("\n", stderr);
	if (session->guard.reason == GUARD_NONE)
		session_guarded(session, print);
	if ((fflush(stdout) || ferror(stdout)) && !reader_left()) {
		fputs("stc: error: standard output cannot be written\n", stderr);
		status = status == STC_OK ? STC_REFUSED : status;
	}
	fputs(session->last_words, stderr);
	session_free(session);
	return (int)status;
}
