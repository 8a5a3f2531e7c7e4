// A real Chromium for the tests of pages; they skip themselves (77) where there is none.
import { accessSync, constants, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import process from 'node:process';

import { chromium } from 'playwright-core';

// The source of axe, which finds what a page keeps from people who cannot see or use a mouse.
export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

function onPath(name) {
  return process.env.PATH.split(delimiter).map((folder) => join(folder, name)).find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export async function launch() {
  const program = onPath('chromium') ?? onPath('chromium-browser') ?? onPath('google-chrome');
  if (!program) {
    console.log('no Chromium is installed here');
    process.exit(77);
  }
  return chromium.launch({ executablePath: program, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
}

// Gathers what a page must not do.
export function complaintsOf(page) {
  const complaints = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('dialog', (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  return complaints;
}
