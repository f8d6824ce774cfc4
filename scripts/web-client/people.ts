import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { waitUntil } from '../../test/support/wait.ts'

/** Where pictures of the story go, numbered. */
export class Album {
  readonly folder: string
  #count = 0

  constructor(folder: string) {
    this.folder = folder
  }

  async take(page: Page, name: string): Promise<void> {
    await mkdir(this.folder, { recursive: true })
    const number = String(++this.#count).padStart(2, '0')
    const file = `${number}-${name.replace(/[^a-z0-9]+/gi, '-').slice(0, 50)}.png`
    await page.screenshot({ path: join(this.folder, file) })
  }
}

/** Somebody at a page with matrix-js-sdk. */
export interface Friend {
  readonly userId: string
  readonly page: Page
  /** Calls a method of the client, and returns what it resolves to, as JSON. */
  ask<T = unknown>(method: string, ...args: readonly unknown[]): Promise<T>
  say(roomId: string, body: string, more?: object): Promise<string>
  /** Waits until an event is in the room's timeline. */
  sees(what: string, roomId: string, is: (event: Seen) => boolean): Promise<Seen>
}

export interface Seen {
  readonly id: string
  readonly type: string
  readonly sender: string
  readonly body: string | undefined
  readonly redacted: boolean
}

export async function openFriend(
  context: BrowserContext,
  site: string,
  baseUrl: string,
  name: string,
  password: string,
): Promise<Friend> {
  const page = await context.newPage()
  await page.goto(`${site}/friend.html`)
  await page.waitForFunction('window.enter !== undefined')
  await page.evaluate(`enter(${[baseUrl, name, password].map((text) => JSON.stringify(text)).join(', ')})`)
  const userId = await page.evaluate<string>('client.getSafeUserId()')
  const ask = <T>(method: string, ...args: readonly unknown[]): Promise<T> =>
    page.evaluate<T>(`ask(${JSON.stringify(method)}, ${JSON.stringify(args)})`)
  return {
    userId,
    page,
    ask,
    async say(roomId, body, more = {}) {
      const content = { msgtype: 'm.text', body, ...more }
      return (await ask<{ event_id: string }>('sendEvent', roomId, 'm.room.message', content)).event_id
    },
    sees: (what, roomId, is) =>
      waitUntil(`${what} at ${userId}`, async () => {
        const events = await page.evaluate<Seen[]>(`timeline(${JSON.stringify(roomId)})`)
        return events.find(is)
      }),
  }
}
