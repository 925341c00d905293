/* Finds the channels of values and kernels (fold_channels.h).  A convolution tells them: weights
 * vary along channels of its result, and along those of its operand in a reduction that no place
 * of the image moves.  Other kernels leave channels apart, so what is known of one side holds
 * for the other. */
#include "folding/fold_channels.h"
#include "folding/join_dimensions.h"
#include "ir/affine.h"
#include "ir/kernel_edit.h"
#include "schedule/kernel_schedule.h"
#include "schedule/register_tile.h"
#include "schedule/tensor_sources.h"

struct channel_search {
	struct module *module;
	bool changed; /* a value got its channels in this round */
};

struct channel_walk {   /* of a value */
	int64_t pitch;  /* elements between neighbouring channels */
	int64_t groups; /* elements between groups of channels; 0: not known, or there are none */
};

/* Elements between neighbouring channels of a value; 0: not known. */
static int64_t channel_pitch(const struct value *value)
{
	return value->data ? ((const struct channel_walk *)value->data)->pitch : 0;
}

static void set_channel_pitch(
        struct channel_search *s, struct value *value, int64_t pitch, int64_t groups)
{
	if (pitch <= 0 || value->data)
		return;
	struct channel_walk *kept = ARENA_NEW(s->module->arena, struct channel_walk);
	*kept = (struct channel_walk){ pitch, groups };
	value->data = kept;
	s->changed = true;
}

static bool is_weight(const struct module *module, const struct value *value)
{
	if (value->def)
		return is_tensor_constant(value->def);
	const struct attr *role =
	        function_argument_attr(module_main(module), value->index, KEY_STREAM_ROLE);
	return role && text_same(role->text, "weight");
}

/* The operand of a contraction that is an image, the other one being its weights; -1: it is no
 * contraction of this form. */
static int image_operand(const struct module *module, const struct op *op)
{
	if (op->operands != 2 || op->kernel->post.count || !is_contraction(op))
		return -1;
	bool first = is_weight(module, op->operand[0]);
	return first == is_weight(module, op->operand[1]) ? -1 : first;
}

/* The image's dimension along which a loop walks; -1: there are several. */
static int dimension_of(const struct op *op, int image, int loop)
{
	int64_t step;
	return schedule_data_dim(op->operand[image]->type, op->kernel->operand[image].stride[loop],
	        op->kernel->loop[loop].extent, &step);
}

/* A reduction along several dimensions at once counts as one of a window. */
bool is_window_loop(const struct op *op, int image, int loop)
{
	int dim = dimension_of(op, image, loop);
	bool found = dim < 0;
	for (int l = 0; l < op->kernel->loops; l++)
		found = found ||
		        (!op->kernel->loop[l].reduction && op->kernel->operand[image].stride[l] &&
		                dimension_of(op, image, l) == dim);
	return found;
}

/* The only loop of a contraction that moves its weights and is (or is no) reduction, and does not
 * slide; -1: none or several. */
static int only_loop(const struct op *op, int image, bool reduction)
{
	int found = -1;
	for (int l = 0; l < op->kernel->loops; l++) {
		if (op->kernel->loop[l].reduction != reduction || op->kernel->loop[l].extent == 1 ||
		        !op->kernel->operand[1 - image].stride[l] ||
		        (reduction && is_window_loop(op, image, l)))
			continue;
		if (found >= 0)
			return -1;
		found = l;
	}
	return found;
}

/* The parallel loop over groups of channels outside of a contraction's channels: it moves weights
 * and image. -1: there is none. */
static int group_loop(const struct op *op, int image, int channel)
{
	const struct kernel *kernel = op->kernel;
	int found = -1;
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction && l != channel && kernel->loop[l].extent > 1 &&
		        kernel->operand[1 - image].stride[l])
			found = found < 0 && kernel->operand[image].stride[l] ? l : -2;
	return found;
}

/* The loop over channels of a contraction's result; -1: it is not known. Of groups of channels it
 * is the one that moves no image. */
static int channel_loop(const struct op *op, int image)
{
	int found = only_loop(op, image, false);
	for (int l = 0; l < op->kernel->loops && found < 0; l++)
		if (!op->kernel->loop[l].reduction && op->kernel->loop[l].extent > 1 &&
		        op->kernel->operand[1 - image].stride[l] &&
		        !op->kernel->operand[image].stride[l])
			found = group_loop(op, image, l) >= 0 ? l : -1;
	return found;
}

static void learn_from_contraction(struct channel_search *s, struct op *op, int image)
{
	const struct access *access = &op->kernel->operand[image];
	int channel = channel_loop(op, image);
	int term = only_loop(op, image, true);
	if (channel < 0)
		return;
	int group = group_loop(op, image, channel);
	int64_t groups = group < 0 ? 0 : access->stride[group];
	if (access->stride[channel])
		set_channel_pitch(s, op->operand[image], access->stride[channel], groups);
	else if (term >= 0)
		set_channel_pitch(s, op->operand[image], access->stride[term], groups);
	set_channel_pitch(s, op->result[0], op->kernel->result.stride[channel],
	        group < 0 ? 0 : op->kernel->result.stride[group]);
}

static void learn_from_neighbours(struct channel_search *s, struct op *op)
{
	const struct kernel *kernel = op->kernel;
	for (int j = 0; j < op->operands; j++)
		for (int l = 0; l < kernel->loops; l++) {
			int64_t from = kernel->operand[j].stride[l];
			int64_t to = kernel->result.stride[l];
			if (kernel->loop[l].extent == 1 || kernel->loop[l].reduction || !from ||
			        !to)
				continue;
			if (from == channel_pitch(op->operand[j]))
				set_channel_pitch(s, op->result[0], to, 0);
			else if (to == channel_pitch(op->result[0]))
				set_channel_pitch(s, op->operand[j], from, 0);
		}
}

static bool is_plain_kernel(const struct op *op)
{
	return op->code == OP_KERNEL && !kernel_is_gather(op);
}

/* Channels that a kernel walks at once become one dimension. Of a concatenation's operand it walks
 * those within the guard. */
static void join_channels(struct channel_search *s, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next)
		for (int j = 0; is_plain_kernel(op) && j < op->operands; j++)
			for (int l = 0; l < op->kernel->loops; l++) {
				const struct access *access = &op->kernel->operand[j];
				if (!access->stride[l] ||
				        access->stride[l] != channel_pitch(op->operand[j]))
					continue;
				join_walked_dimensions(s->module, block, op->operand[j],
				        access->stride[l], access_extent(op->kernel, access, l));
			}
}

/* The most channels of which all operands of a concatenation have a multiple. */
static int64_t channels_of_parts(const struct op *op, int loop)
{
	int64_t channels = op->kernel->loop[loop].extent;
	for (int j = 0; j < op->operands; j++) {
		const struct guard_range *guard = access_guard(&op->kernel->operand[j], loop);
		if (guard)
			channels =
			        common_divisor(common_divisor(channels, guard->low), guard->high);
	}
	return channels;
}

/* Channels of a concatenation become groups, each of which lies in one operand, so that those of a
 * group can be lanes. false: they cannot. */
static bool split_concatenation(struct module *module, const struct folded_kernel *folded)
{
	return folded->narrow &&
	        kernel_split_loop(module, folded->op, folded->channel,
	                channels_of_parts(folded->op, folded->channel));
}

static bool has_products(const struct kernel *kernel)
{
	int term;
	return kernel_has_reduction(kernel) && kernel_combine(kernel, &term) == OP_ADDI &&
	        body_has(&kernel->update, OP_MULI);
}

/* Does a parallel loop other than that of channels walk the image? */
static bool has_places(const struct kernel *kernel, int image, int channel)
{
	bool found = false;
	for (int l = 0; l < kernel->loops; l++)
		found = found ||
		        (!kernel->loop[l].reduction && l != channel &&
		                kernel->operand[image].stride[l]);
	return found;
}

bool is_image_loop(const struct op *op, int image, int loop)
{
	const struct access *access = &op->kernel->operand[image];
	for (int l = 0; l < op->kernel->loops; l++)
		if (l != loop && access->stride[l] >= access->stride[loop])
			return false;
	return true;
}

/* Do the parallel loops walk channels and the images of a batch alone, and all reductions a whole
 * image? */
static bool is_dense(const struct op *op, int image, int channel)
{
	const struct kernel *kernel = op->kernel;
	for (int l = 0; l < kernel->loops; l++) {
		bool whole = is_image_loop(op, image, l);
		if (kernel->loop[l].reduction)
			whole = dimension_of(op, image, l) < 0 || !is_window_loop(op, image, l);
		if (l != channel && kernel->loop[l].extent > 1 && !whole)
			return false;
	}
	return true;
}

/* What contractions say comes first: a kernel that moves elements between dimensions may take the
 * channels of one side for pixels of the other. But for dense ones: to them all of an image is
 * channels. */
static void find_channels(struct channel_search *s, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		int image = is_plain_kernel(op) ? image_operand(s->module, op) : -1;
		if (image >= 0 && !is_dense(op, image, channel_loop(op, image)))
			learn_from_contraction(s, op, image);
	}
	do {
		s->changed = false;
		for (struct op *op = block->first; op; op = op->next) {
			int image = is_plain_kernel(op) ? image_operand(s->module, op) : -1;
			if (image >= 0)
				learn_from_contraction(s, op, image);
			else if (is_plain_kernel(op))
				learn_from_neighbours(s, op);
		}
	} while (s->changed);
}

/* Can a reduction be unrolled as taps of a window?  They are neighbours in the image, and come from
 * another kernel, a pixel at a time. */
static bool is_tap(const struct op *op, int image, int loop)
{
	const struct kernel *kernel = op->kernel;
	const struct value *from = op->operand[image];
	int64_t step = 0;
	return kernel->loop[loop].reduction && kernel->loop[loop].extent > 1 &&
	        (op->operands == 1 || kernel->operand[1 - image].stride[loop]) &&
	        is_window_loop(op, image, loop) && !kernel_is_guarded(op, loop) && from->def &&
	        from->def->code == OP_KERNEL && !body_uses_counters(&kernel->update) &&
	        schedule_data_dim(from->type, kernel->operand[image].stride[loop],
	                kernel->loop[loop].extent, &step) >= 0 &&
	        step == 1;
}

/* Finds the taps of a window, unless it has more dimensions or one whose elements are apart. */
static void find_taps(struct folded_kernel *folded)
{
	const struct op *op = folded->op;
	const int64_t *stride = op->kernel->operand[folded->image].stride;
	for (int l = 0; l < op->kernel->loops; l++) {
		if (!op->kernel->loop[l].reduction || op->kernel->loop[l].extent == 1 ||
		        l == folded->term)
			continue;
		if (folded->taps == FOLD_TAPS || !is_tap(op, folded->image, l)) {
			folded->taps = 0;
			return;
		}
		int at = folded->taps++;
		for (; at > 0 && stride[folded->tap[at - 1]] < stride[l]; at--)
			folded->tap[at] = folded->tap[at - 1];
		folded->tap[at] = l;
	}
}

/* Does it combine the elements of a window as they are? */
static bool pools(const struct op *op)
{
	int operators = 0;
	int term;
	for (int n = 0; n < op->kernel->update.count; n++)
		operators += op->kernel->update.node[n].kind == NODE_OP;
	return kernel_has_reduction(op->kernel) && op->operands == 1 && operators == 1 &&
	        kernel_combine(op->kernel, &term) != OP_NONE;
}

/* Do the channels of the result share a dimension with its places? */
static bool channels_are_apart(const struct op *op, int channel)
{
	int64_t step = 0;
	int dim = schedule_data_dim(op->result[0]->type, op->kernel->result.stride[channel],
	        op->kernel->loop[channel].extent, &step);
	return dim < 0 || step != 1;
}

/* Can the kernel be folded, and which are its channels?  Sums of reals are left alone: their order
 * is the source's. */
static bool is_foldable(const struct channel_search *s, struct op *op, struct folded_kernel *folded)
{
	const struct kernel *kernel = op->kernel;
	int64_t pitch = op->code == OP_KERNEL ? channel_pitch(op->result[0]) : 0;
	if (!pitch || kernel_is_gather(op) || kernel->scan || kernel->ordered ||
	        kernel->tile_outermost ||
	        (kernel_has_reduction(kernel) && type_is_real(kernel->type)))
		return false;
	*folded = (struct folded_kernel){ .op = op, .channel = -1, .term = -1 };
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].run_time)
			return false;
		if (!kernel->loop[l].reduction && kernel->result.stride[l] == pitch &&
		        kernel->loop[l].extent > 1)
			folded->channel = l;
	}
	folded->groups = ((const struct channel_walk *)op->result[0]->data)->groups;
	folded->narrow = folded->channel >= 0 &&
	        (kernel_is_guarded(op, folded->channel) || channels_are_apart(op, folded->channel));
	int image = image_operand(s->module, op);
	folded->products = has_products(kernel);
	if (image >= 0) {
		folded->image = image;
		folded->term = only_loop(op, image, true);
		folded->slides = folded->products && has_places(kernel, image, folded->channel);
		folded->dense = folded->products && is_dense(op, image, folded->channel);
	}
	if (folded->slides || pools(op))
		find_taps(folded);
	return folded->channel >= 0;
}

struct folded_kernels find_folded_kernels(struct module *module, struct block *block)
{
	struct channel_search s = { .module = module };
	struct folded_kernel folded;
	VEC(struct folded_kernel) found = { 0 };
	ir_clear_data(block);
	find_channels(&s, block);
	join_channels(&s, block);
	for (struct op *op = block->first; op; op = op->next)
		if (is_foldable(&s, op, &folded) &&
		        (!split_concatenation(module, &folded) || is_foldable(&s, op, &folded)))
			VEC_PUSH(module->arena, &found, folded);
	ir_clear_data(block);
	return (struct folded_kernels){ .count = (int)found.count, .kernel = found.data };
}
