/* Parses the option --quant by tables of schemes and of their settings. */
#include "driver/quant_option.h"
#include <string.h>

static const struct {
	const char *name;
	struct quant_scheme scheme;
} schemes[] = {
	{ "w4a8", { .weight = 4, .head = 4, .embedding = 8, .group = 128, .state = 8 } },
	{ "w8a8", { .weight = 8, .head = 8, .embedding = 8, .group = 128, .state = 8 } },
	{ "bf16", { .bf16 = true, .state = 16 } },
	{ "fp32", { .group = 128 } },
};
#define SCHEMES ((int)(sizeof schemes / sizeof *schemes))

enum key { QUANT_GROUP, QUANT_HEAD, QUANT_EMBEDDING, QUANT_STATE, QUANT_ACTIVATION, QUANT_ZERO };

static const struct {
	const char *key, *value;
	enum key which;
	int64_t number;
} choices[] = {
	{ "group", "32", QUANT_GROUP, 32 },
	{ "group", "64", QUANT_GROUP, 64 },
	{ "group", "128", QUANT_GROUP, 128 },
	{ "group", "row", QUANT_GROUP, 0 },
	{ "head", "i4", QUANT_HEAD, 4 },
	{ "head", "i8", QUANT_HEAD, 8 },
	{ "head", "f32", QUANT_HEAD, 0 },
	{ "embedding", "i8", QUANT_EMBEDDING, 8 },
	{ "embedding", "f32", QUANT_EMBEDDING, 0 },
	{ "kv", "i8", QUANT_STATE, 8 },
	{ "kv", "bf16", QUANT_STATE, 16 },
	{ "kv", "f32", QUANT_STATE, 0 },
	{ "activation", "group", QUANT_ACTIVATION, 0 },
	{ "activation", "token", QUANT_ACTIVATION, 1 },
	{ "zero", "none", QUANT_ZERO, 0 },
	{ "zero", "group", QUANT_ZERO, 1 },
};
#define QUANT_CHOICES ((int)(sizeof choices / sizeof *choices))

/* PATTERN=w4a8, w8a8 or fp32: the layers with such names. */
static bool apply_to_layers(struct arena *arena, struct quant_scheme *scheme, char *option)
{
	char *equals = strrchr(option, '=');
	int i = 0;
	while (equals && i < SCHEMES &&
	        (schemes[i].scheme.bf16 || strcmp(schemes[i].name, equals + 1)))
		i++;
	if (!equals || equals == option || i == SCHEMES)
		return false;
	*equals = 0;
	struct layer_bits *made = ARENA_ARRAY(arena, struct layer_bits, scheme->layers + 1);
	if (scheme->layers)
		memcpy(made, scheme->layer, (size_t)scheme->layers * sizeof *made);
	made[scheme->layers++] = (struct layer_bits){ option, schemes[i].scheme.weight };
	scheme->layer = made;
	scheme->weights = scheme->weights || schemes[i].scheme.weight;
	return true;
}

static bool apply(struct quant_scheme *scheme, const char *option)
{
	const char *equals = strchr(option, '=');
	int i = 0;
	while (equals && i < QUANT_CHOICES &&
	        (strncmp(choices[i].key, option, (size_t)(equals - option)) ||
	                choices[i].key[equals - option] || strcmp(choices[i].value, equals + 1)))
		i++;
	if (!equals || i == QUANT_CHOICES)
		return false;
	switch (choices[i].which) {
	case QUANT_GROUP: scheme->group = choices[i].number; break;
	case QUANT_HEAD: scheme->head = (int)choices[i].number; break;
	case QUANT_EMBEDDING: scheme->embedding = (int)choices[i].number; break;
	case QUANT_STATE: scheme->state = (int)choices[i].number; break;
	case QUANT_ACTIVATION: scheme->per_token = choices[i].number; break;
	case QUANT_ZERO: scheme->zeros = choices[i].number; break;
	}
	return true;
}

static bool quant_option_error(struct diag *diag, const char *text, const char *part)
{
	diag_error(diag, NOWHERE, "--quant %s: '%s' cannot be read", text, part);
	return diag_note(diag,
	        "w4a8, w8a8, bf16 or fp32; after the first two also ,group=32|64|128|row "
	        ",head=i4|i8|f32 ,embedding=i8|f32 ,kv=i8|bf16|f32 "
	        ",activation=group|token ,zero=none|group; after all but bf16 "
	        ",LAYER=w4a8|w8a8|fp32, as lm_head=w8a8 or *.down_proj=fp32");
}

bool quant_parse(struct arena *arena, struct diag *diag, const char *text,
        const struct quant_scheme **scheme)
{
	*scheme = NULL;
	if (!text)
		return true;
	char *rest = text_copy(arena, text, strlen(text));
	char *next = strchr(rest, ',');
	int i = 0;
	if (next)
		*next++ = 0;
	while (i < SCHEMES && strcmp(schemes[i].name, rest))
		i++;
	if (i == SCHEMES)
		return quant_option_error(diag, text, rest);
	struct quant_scheme *made = arena_copy(arena, &schemes[i].scheme, sizeof *made);
	made->text = text;
	made->weights = made->weight;
	for (char *option = next; option; option = next) {
		next = strchr(option, ',');
		if (next)
			*next++ = 0;
		bool read = !made->bf16 &&
		        (apply_to_layers(arena, made, option) ||
		                (made->weight && apply(made, option)));
		if (!read)
			return quant_option_error(diag, text, option);
	}
	*scheme = made->weights || made->bf16 ? made : NULL;
	return true;
}
