// SPDX-License-Identifier: GPL-2.0-only
// Changes the choice by key.
#include "ctl/cmd/top_ui.h"

#include <string.h>

#include "ctl/cmd/screen.h"

struct top_ui top_ui_new(void)
{
	return (struct top_ui){.choice.sort = TOP_BY_10S};
}

void top_ui_fit(struct top_ui *ui, size_t rows, size_t page)
{
	size_t last = rows > page ? rows - page : 0;

	ui->rows = rows;
	ui->page = page;
	if (ui->first > last)
		ui->first = last;
}

static void choose_view(struct top_ui *ui, int view)
{
	ui->view = (enum top_view)((view + TOP_VIEWS) % TOP_VIEWS);
	ui->first = 0;
}

static void clear_filter(struct top_ui *ui)
{
	ui->editing = false;
	ui->choice.filter[0] = '\0';
	ui->first = 0;
}

// Removes the last character with all its bytes.
static void shorten_filter(struct top_ui *ui)
{
	char *filter = ui->choice.filter;
	size_t len = strlen(filter);

	while (len && ((unsigned char)filter[len - 1] & 0xc0) == 0x80)
		len--;
	filter[len ? len - 1 : 0] = '\0';
	ui->first = 0;
}

static void edit(struct top_ui *ui, int key)
{
	size_t len = strlen(ui->choice.filter);

	if (key == SCREEN_ENTER)
		ui->editing = false;
	else if (key == SCREEN_ESCAPE)
		clear_filter(ui);
	else if (key == SCREEN_BACKSPACE)
		shorten_filter(ui);
	else if (key >= ' ' && key < SCREEN_UP && len < TOP_FILTER) {
		ui->choice.filter[len] = (char)key;
		ui->choice.filter[len + 1] = '\0';
		ui->first = 0;
	}
}

static bool scroll(struct top_ui *ui, int key)
{
	size_t page = ui->page ? ui->page : 1;

	switch (key) {
	case SCREEN_UP:
		ui->first -= ui->first > 0;
		break;
	case SCREEN_DOWN:
		ui->first++;
		break;
	case SCREEN_PAGE_UP:
		ui->first -= ui->first < page ? ui->first : page;
		break;
	case SCREEN_PAGE_DOWN:
	case ' ':
		ui->first += page;
		break;
	case SCREEN_HOME:
		ui->first = 0;
		break;
	case SCREEN_END:
		ui->first = ui->rows;
		break;
	default:
		return false;
	}
	top_ui_fit(ui, ui->rows, ui->page);
	return true;
}

static bool change_view(struct top_ui *ui, int key)
{
	if (key >= '0' && key <= '9') // 0: the tenth
		choose_view(ui, key == '0' ? 9 : key - '1');
	else if (key == SCREEN_TAB || key == SCREEN_RIGHT || key == 'v')
		choose_view(ui, (int)ui->view + 1);
	else if (key == SCREEN_TAB_BACK || key == SCREEN_LEFT || key == 'V')
		choose_view(ui, (int)ui->view - 1);
	else
		return false;
	return true;
}

static void choose(struct top_ui *ui, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		ui->ended = true;
		break;
	case 's':
		ui->choice.sort = (ui->choice.sort + 1) % TOP_SORTS;
		ui->first = 0;
		break;
	case 'r':
		ui->choice.reverse = !ui->choice.reverse;
		ui->first = 0;
		break;
	case 'b':
		ui->choice.bits = !ui->choice.bits;
		break;
	case 'p':
		ui->paused = !ui->paused;
		break;
	case '/':
	case 'f':
		ui->editing = true;
		break;
	case SCREEN_ESCAPE:
		clear_filter(ui);
		break;
	default:
		break;
	}
}

void top_ui_key(struct top_ui *ui, int key)
{
	if (key == SCREEN_NO_KEY || key == SCREEN_OTHER)
		return;
	if (ui->editing) {
		edit(ui, key);
		return;
	}
	if (key == 'h' || key == '?' || (ui->help && key == SCREEN_ESCAPE)) {
		ui->help = key != SCREEN_ESCAPE && !ui->help;
		return;
	}
	ui->help = false;
	if (!scroll(ui, key) && !change_view(ui, key))
		choose(ui, key);
}
