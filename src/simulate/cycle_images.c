/* Records when each image of the first launch is complete: when the processes that store results
 * have taken the last of its words (predict/images.h). */
#include "simulate/cycle_network.h"

void cycle_images_build(struct cycle_network *network)
{
	const struct image_channels found = image_channels_of(network->arena, network->module);
	network->images = found.images;
	network->image_end = ARENA_ARRAY(network->arena, int64_t, found.images + 1);
	for (int i = 0; found.images && i < found.count; i++)
		network->channels.data[found.channel[i].channel]->results = found.channel[i].words;
}

static int64_t words_until(const struct cycle_network *network, const struct cycle_channel *channel)
{
	return channel->results && channel->image < network->images
	        ? image_end(channel->results, network->images, channel->image)
	        : -1;
}

void cycle_images_clean(struct cycle_network *network)
{
	for (int64_t i = 0; i < network->images; i++)
		network->image_end[i] = 0;
	for (size_t i = 0; i < network->channels.count; i++) {
		struct cycle_channel *channel = network->channels.data[i];
		channel->image = 0;
		channel->image_words = words_until(network, channel);
	}
}

void cycle_image_complete(
        struct cycle_network *network, struct cycle_channel *channel, int64_t time)
{
	for (; channel->image_words == channel->popped;
	        channel->image_words = words_until(network, channel)) {
		int64_t *end = &network->image_end[channel->image++];
		*end = time > *end ? time : *end;
	}
}

/* An image is there when its words have arrived, which takes each as long as the last one's. */
void cycle_images_collect(const struct cycle_network *network, struct cycle_result *result)
{
	int64_t images = network->launches_done == network->options.launches ? network->images : 0;
	int64_t arrival = images ? result->cycles - network->image_end[images - 1] : 0;
	if (!images || network->options.launches > 1 || !network->options.arena)
		return;
	int64_t *end = ARENA_ARRAY(network->options.arena, int64_t, images);
	for (int64_t i = 0; i < images; i++)
		end[i] = network->image_end[i] + arrival;
	result->images = images;
	result->image_end = end;
}

static bool reads_memory(const struct cycle_result *result, int process)
{
	for (int i = 0; i < result->ports; i++)
		if (result->port[i].process == process && !result->port[i].write)
			return true;
	return false;
}

struct image_times cycle_image_times(const struct cycle_result *result)
{
	int64_t images = result->images;
	int64_t busiest = 0;
	if (images < 2)
		return (struct image_times){ .first = result->cycles };
	for (int i = 0; i < result->processes; i++)
		if (cycle_busy(&result->process[i]) > busiest && !reads_memory(result, i))
			busiest = cycle_busy(&result->process[i]);
	const int64_t *end = result->image_end;
	const struct image_times found = { end[0], (end[images - 1] - end[0]) / (images - 1),
		false };
	return image_times_of(found, images, result->cycles, busiest);
}
