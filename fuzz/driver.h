/* The entry point for libFuzzer, and a main without it that tries seeded mutations of files.  The
 * includer defines run(text, size), FUZZ_NAME and `words`, which mutations insert; `text` ends in a
 * zero and may be changed.  The environment variable FUZZ_KEEP names a file that receives every
 * input before it is tried. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	run(text, size);
	free(text);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static unsigned long long state;

static size_t below(size_t limit)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return limit ? (size_t)(state >> 33) % limit : 0;
}

struct input {
	char *text;
	size_t size, capacity;
};

static void replace(struct input *input, size_t at, size_t removed, const char *with, size_t added)
{
	if (at + removed > input->size || input->size - removed + added > input->capacity)
		return;
	memmove(input->text + at + added, input->text + at + removed, input->size - at - removed);
	memmove(input->text + at, with, added);
	input->size += added - removed;
}

static size_t token(const struct input *input, size_t at)
{
	return strcspn(input->text + at, " ,:()[]{}<>\n") + 1;
}

static void mutate(struct input *input)
{
	size_t at = below(input->size), from = below(input->size);
	const char *word = words[below(sizeof words / sizeof *words)];
	char byte = (char)(32 + below(95)), copy[64];
	size_t span = 1 + below(sizeof copy - 1);
	input->text[input->size] = 0;
	switch (below(5)) {
	case 0: replace(input, at, 1, &byte, 1); break;
	case 1: replace(input, at, token(input, at), word, strlen(word)); break;
	case 2: replace(input, at, span, "", 0); break;
	case 3: replace(input, at, 0, word, strlen(word)); break;
	default:
		if (from + span > input->size)
			return;
		memcpy(copy, input->text + from, span);
		replace(input, at, below(span), copy, span);
	}
}

static bool load(const char *path, struct input *input)
{
	FILE *file = fopen(path, "rb");
	input->capacity = 1 << 20;
	input->text = malloc(input->capacity + 1);
	if (!file || !input->text)
		return false;
	input->size = fread(input->text, 1, input->capacity / 2, file);
	fclose(file);
	return input->size > 0;
}

int main(int count, char **argument)
{
	if (count < 4)
		return fprintf(stderr, FUZZ_NAME " N SEED FILE …\n"), 2;
	for (int i = 3; i < count; i++) {
		struct input original, input;
		if (!load(argument[i], &original) || !load(argument[i], &input))
			return fprintf(stderr, "%s: cannot be read\n", argument[i]), 2;
		for (long n = 0; n < strtol(argument[1], NULL, 10); n++) {
			state = strtoull(argument[2], NULL, 10) * 1000003 + (unsigned long long)n;
			memcpy(input.text, original.text, input.size = original.size);
			for (size_t k = 1 + below(6); k > 0; k--)
				mutate(&input);
			if (getenv("FUZZ_KEEP")) {
				FILE *file = fopen(getenv("FUZZ_KEEP"), "wb");
				if (file && fwrite(input.text, 1, input.size, file) == input.size)
					fclose(file);
			}
			input.text[input.size] = 0;
			LLVMFuzzerTestOneInput((const unsigned char *)input.text, input.size);
		}
		free(original.text);
		free(input.text);
	}
	return 0;
}
#endif
