import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { PASSWORD } from '../support/api.ts'
import { graveProblems, lookAt, type Shape } from '../support/looks.ts'
import { CONSOLE, type Town } from './world.ts'

export interface Scene {
  readonly town: Town
  readonly page: Page
  /** Looks at a page in all its shapes. */
  look(name: string): Promise<void>
}

/** A step of the story, told as what the administrator does. */
export type Step = readonly [name: string, act: (scene: Scene) => Promise<void>]

const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).first().click()
const menu = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name, exact: true }).click()
const tab = (page: Page, name: string) => page.locator('nav.tabs').getByRole('link', { name, exact: true }).click()
/** What a corner of the page says after an act; it is closed, so that the next one is seen. */
async function said(page: Page, words: string | RegExp): Promise<void> {
  await page.locator('.said').filter({ hasText: words }).waitFor()
  await page.getByRole('button', { name: 'Close', exact: true }).click()
}
const inDialog = (page: Page) => page.getByRole('dialog')

export const SIGN_IN: readonly Step[] = [
  [
    'comes without a session and is asked to sign in',
    async ({ town, page }) => {
      await page.goto(town.alpha.server.baseUrl + CONSOLE)
      await heading(page, 'Sign in')
    },
  ],
  [
    'signs in, and sees what the server is doing',
    async ({ page, look }) => {
      await page.getByLabel('User name or email address').fill('boss')
      await page.getByLabel('Password').fill(PASSWORD)
      await press(page, 'Sign in')
      await heading(page, 'Overview')
      await page.locator('.chart .uplot').first().waitFor()
      await page.getByText('All other servers have been sent everything.').waitFor()
      await look('overview')
    },
  ],
]

export const USERS: readonly Step[] = [
  [
    'finds a user by a part of the name',
    async ({ page, look }) => {
      await menu(page, 'Users')
      await heading(page, 'Users')
      await page.getByRole('link', { name: /@alice/ }).waitFor()
      await look('users')
      await page.keyboard.press('/')
      await page.keyboard.type('mall')
      await page.getByText('1 to 1 of 1').waitFor()
      expect(await page.getByRole('link', { name: /@alice/ }).count()).toBe(0)
    },
  ],
  [
    'looks at the account',
    async ({ page, look }) => {
      await page.getByRole('link', { name: /@mallory/ }).click()
      await heading(page, /^@mallory:/)
      await page.getByText('record of acts', { exact: true }).waitFor()
      await look('user')
    },
  ],
  [
    'suspends it',
    async ({ page }) => {
      await press(page, 'Suspend')
      await said(page, /is suspended/)
      await page.getByText('suspended', { exact: true }).waitFor()
    },
  ],
  [
    'releases it',
    async ({ page }) => {
      await press(page, 'Release')
      await said(page, /may write again/)
    },
  ],
  [
    'locks it',
    async ({ page }) => {
      await press(page, 'Lock')
      await said(page, /is locked/)
    },
  ],
  [
    'unlocks it',
    async ({ page }) => {
      await press(page, 'Unlock')
      await said(page, /is unlocked/)
    },
  ],
  [
    'is told why a new password is too short',
    async ({ page }) => {
      await press(page, 'Reset password')
      await inDialog(page).getByLabel('New password').fill('x')
      await inDialog(page).getByRole('button', { name: 'Set the password' }).click()
      await page
        .getByRole('alert')
        .filter({ hasText: /password/i })
        .waitFor()
      await press(page, 'Close')
    },
  ],
  [
    'sets a good one, and leaves the sessions',
    async ({ page }) => {
      await press(page, 'Reset password')
      await inDialog(page).getByLabel('New password').fill('a much longer password 42')
      await inDialog(page).getByLabel('End all their sessions').uncheck()
      await inDialog(page).getByRole('button', { name: 'Set the password' }).click()
      await said(page, 'The password is set.')
    },
  ],
  [
    'looks at the sessions, and ends one',
    async ({ page, look }) => {
      await tab(page, 'Sessions')
      await page.getByRole('button', { name: 'End', exact: true }).waitFor()
      await look('sessions')
      await press(page, 'End')
      await inDialog(page).getByRole('button', { name: 'End it' }).click()
      await said(page, 'The session has ended.')
      await page.getByText('Signed in nowhere.').waitFor()
    },
  ],
  [
    'looks at the rooms of the user',
    async ({ page, town }) => {
      await tab(page, 'Rooms')
      await page.getByRole('link', { name: town.garden }).waitFor()
    },
  ],
  [
    'quarantines a file of the user, and shows it again',
    async ({ page, look }) => {
      await tab(page, 'Media')
      await page.getByText('seed.txt').waitFor()
      await press(page, 'Quarantine')
      await said(page, 'Nobody sees the file any more.')
      await look('user-media')
      await press(page, 'Show again')
      await said(page, 'The file is seen again.')
    },
  ],
  [
    'makes the user an administrator, and takes it away again',
    async ({ page }) => {
      await press(page, 'Make administrator')
      await inDialog(page).getByRole('button', { name: 'Make administrator' }).click()
      await said(page, 'Done.')
      await press(page, 'No administrator')
      await inDialog(page).getByRole('button', { name: 'Take it away' }).click()
      await said(page, 'Done.')
      await page.getByRole('button', { name: 'Make administrator', exact: true }).waitFor()
    },
  ],
]

export const ROOMS: readonly Step[] = [
  [
    'finds a room',
    async ({ page, look }) => {
      await menu(page, 'Rooms')
      await page.getByRole('link', { name: /Garden/ }).waitFor()
      await look('rooms')
      await page.getByLabel('in order of').selectOption('newest')
      await page.getByRole('link', { name: /Garden/ }).waitFor()
      await page.getByRole('searchbox').fill('nothing of the kind')
      await page.getByText('No room is called that.').waitFor()
      await page.getByRole('searchbox').fill('gard')
      await page.getByRole('link', { name: /Garden/ }).click()
      await heading(page, 'Garden')
      await page.getByText('Things that grow').waitFor()
      await look('room')
    },
  ],
  [
    'looks at its members',
    async ({ page, town, look }) => {
      await tab(page, 'Members')
      await page.getByRole('link', { name: town.bob.userId }).waitFor()
      await look('members')
    },
  ],
  [
    'looks at its state',
    async ({ page, look }) => {
      await tab(page, 'State')
      await page.getByText('m.room.create').waitFor()
      await page.locator('summary').first().click()
      await look('state')
    },
  ],
  [
    'blocks it, and unblocks it',
    async ({ page }) => {
      await press(page, 'Block')
      await said(page, 'Nobody here can join the room any more.')
      await page.getByText('blocked', { exact: true }).waitFor()
      await press(page, 'Unblock')
      await said(page, 'The room may be joined again.')
    },
  ],
  [
    'gives somebody its rights',
    async ({ page, town }) => {
      await press(page, 'Make somebody admin')
      await inDialog(page).getByLabel('User id').fill(town.boss.userId)
      await inDialog(page).getByRole('button', { name: 'Give the rights' }).click()
      await said(page, /has all rights/)
    },
  ],
]

export const GRAPH: readonly Step[] = [
  [
    'sees in the event graph what was refused, and by which clause',
    async ({ page, look }) => {
      await tab(page, 'Event graph')
      await page.getByText('soft-failed').first().waitFor()
      await page.getByText(/by the current state: .*\d/).waitFor()
      await look('graph')
    },
  ],
  [
    'opens the refused event',
    async ({ page, look }) => {
      await page.getByRole('button', { name: /by the current state/ }).click()
      const details = page.getByRole('complementary', { name: 'The event' })
      await details.getByText('soft-failed').waitFor()
      await details.getByRole('link', { name: /@bob/ }).waitFor()
      await look('graph-event')
    },
  ],
]

export const MODERATION: readonly Step[] = [
  [
    'reads the reports',
    async ({ page, look }) => {
      await menu(page, 'Reports')
      await page.getByText('This is spam.').waitFor()
      await press(page, 'Show more')
      await page.locator('blockquote').filter({ hasText: '<script>alert(1)</script>' }).waitFor()
      await look('reports')
    },
  ],
  [
    'suspends the sender from there',
    async ({ page }) => {
      await press(page, 'Suspend the sender')
      await inDialog(page).getByRole('button', { name: 'Suspend' }).click()
      await said(page, /is suspended/)
    },
  ],
  [
    'leaves a note, and closes the report with what was decided',
    async ({ page }) => {
      await page.getByLabel('Note for other administrators').fill('The third time.')
      await press(page, 'Keep it')
      await said(page, 'The note is kept.')
      await page.getByText('The third time.').waitFor()
      await press(page, 'Close the report')
      await inDialog(page).getByLabel('What was decided').fill('Suspended.')
      await inDialog(page).getByRole('button', { name: 'Close it' }).click()
      await said(page, 'The report is closed.')
      await page.getByText('No report is open. Good.').waitFor()
    },
  ],
  [
    'finds it among the decided ones, and opens it again',
    async ({ page, look }) => {
      await tab(page, 'Decided')
      await page.getByText('Suspended.').waitFor()
      await look('reports-decided')
      await press(page, 'Open it again')
      await said(page, 'The report is open again.')
    },
  ],
  [
    'asks for a wave of spam without saying whom',
    async ({ page }) => {
      await menu(page, 'Spam wave')
      await press(page, 'Find them')
      await page.getByRole('alert').filter({ hasText: 'everybody' }).waitFor()
    },
  ],
  [
    'finds the accounts of a wave, and ends it with a click for each verb',
    async ({ page, look }) => {
      await page.getByLabel('Name').fill('mall*')
      await press(page, 'Find them')
      await page.getByText('Found: one account').waitFor()
      await look('wave')
      for (const verb of ['Lock', 'Redact', 'Unlock']) {
        await press(page, verb)
        await inDialog(page).getByRole('button', { name: verb }).click()
        await said(page, 'Done, for 1.')
      }
    },
  ],
  [
    'follows a policy list, is told that it bans everybody, and lets go of it',
    async ({ page, town, look }) => {
      const rule = `/rooms/${encodeURIComponent(town.garden)}/state/m.policy.rule.user/wide`
      const ban = { entity: '@*:*', recommendation: 'm.ban', reason: 'all' }
      await town.alpha.api.call('PUT', rule, { token: town.alice.token, body: ban })
      await menu(page, 'Policy lists')
      await page.getByText('This server follows no list.').waitFor()
      await press(page, 'Follow a list')
      await inDialog(page).getByLabel('Room id').fill(town.garden)
      await inDialog(page).getByRole('button', { name: 'See what it does', exact: true }).click()
      await inDialog(page)
        .getByText(/Its rule "@\*:\*" bans everybody/)
        .waitFor()
      await look('list-effects')
      await inDialog(page).getByRole('button', { name: 'Follow', exact: true }).click()
      await said(page, 'The list is followed.')
      await page.getByText(/Its rule "@\*:\*" bans everybody/).waitFor()
      await look('lists')
      await press(page, 'Remove')
      await inDialog(page).getByRole('button', { name: 'Remove', exact: true }).click()
      await said(page, 'The list is removed.')
      await page.getByText('This server follows no list.').waitFor()
      await town.alpha.api.call('PUT', rule, { token: town.alice.token, body: {} })
    },
  ],
  [
    'sees who keeps how much',
    async ({ page, look }) => {
      await menu(page, 'Media')
      await page.getByRole('cell', { name: '6 B' }).waitFor()
      await look('media')
    },
  ],
  [
    'is told that an address of a file is none',
    async ({ page }) => {
      await page.getByLabel('Address of the file').fill('nonsense')
      await press(page, 'Look')
      await page.getByRole('alert').filter({ hasText: 'An address of a file is like' }).waitFor()
    },
  ],
  [
    'finds a file, hides it, and deletes it',
    async ({ page, town, look }) => {
      const [row] = await town.alpha.server.database.db.query<{ media_id: string }>('SELECT media_id FROM media')
      await page.getByLabel('Address of the file').fill(`mxc://${town.alpha.name}/${row?.media_id}`)
      await press(page, 'Look')
      await page.getByText('seed.txt').waitFor()
      await press(page, 'Quarantine')
      await said(page, /Nobody sees the file/)
      await page.getByText(/quarantined by/).waitFor()
      await look('media-file')
      await press(page, 'Delete')
      await inDialog(page).getByRole('button', { name: 'Delete' }).click()
      await said(page, 'The file is deleted.')
    },
  ],
]

export const OPERATION: readonly Step[] = [
  [
    'sees how the other servers do',
    async ({ page, town, look }) => {
      await menu(page, 'Federation')
      await page.getByRole('rowheader', { name: town.beta.name }).waitFor()
      await look('federation')
    },
  ],
  [
    'makes a registration token',
    async ({ page, look }) => {
      await menu(page, 'Registration tokens')
      await page.getByText('There are no tokens.').waitFor()
      await press(page, 'New token')
      await look('token-dialog')
      await inDialog(page).getByLabel('Token', { exact: true }).fill('spring-2030')
      await inDialog(page).getByLabel('How often it can be used').fill('5')
      await inDialog(page).getByRole('button', { name: 'Create' }).click()
      await said(page, /spring-2030/)
      await page.getByRole('cell', { name: '0 of 5' }).waitFor()
      await look('tokens')
    },
  ],
  [
    'is told that there is such a token',
    async ({ page }) => {
      await press(page, 'New token')
      await inDialog(page).getByLabel('Token', { exact: true }).fill('spring-2030')
      await inDialog(page).getByRole('button', { name: 'Create' }).click()
      await page.getByRole('alert').filter({ hasText: /token/i }).waitFor()
      await press(page, 'Close')
    },
  ],
  [
    'deletes it',
    async ({ page }) => {
      await press(page, 'Delete')
      await inDialog(page).getByRole('button', { name: 'Delete' }).click()
      await said(page, 'The token is deleted.')
    },
  ],
  [
    'looks at the bridges',
    async ({ page, look }) => {
      await menu(page, 'Bridges')
      await page.getByText('None is registered.').waitFor()
      await look('bridges')
    },
  ],
  [
    'looks at the bindings',
    async ({ page, look }) => {
      await menu(page, 'Identity bindings')
      await page.getByText('No address is bound.').waitFor()
      await look('bindings')
    },
  ],
  [
    'looks at the backups',
    async ({ page, look }) => {
      await menu(page, 'Backups')
      await page.getByText('There is no backup yet.').waitFor()
      await look('backups')
    },
  ],
  [
    'reads the configuration, and no secret',
    async ({ page, look }) => {
      await menu(page, 'Configuration')
      await page.getByRole('rowheader', { name: /registration\.shared_secret/ }).waitFor()
      await look('configuration')
      await page.getByLabel('also what is as it comes').check()
      await page
        .locator('td code', { hasText: /^database\.url$/ })
        .first()
        .waitFor()
      expect(await page.locator('tbody').innerText()).not.toContain('`')
      await page.getByLabel('also what is as it comes').uncheck()
      expect(await page.getByText('[hidden]').count()).toBeGreaterThan(0)
      expect(await page.locator('body').innerText()).not.toContain('a secret that administrators share')
    },
  ],
  [
    'finds all of it in the record of acts',
    async ({ page, look }) => {
      await menu(page, 'Record of acts')
      await page.getByRole('rowheader', { name: 'PUT suspend/{userId}' }).first().waitFor()
      await look('acts')
    },
  ],
  [
    'goes by the keys alone',
    async ({ page, look }) => {
      await page.keyboard.press('?')
      await inDialog(page).getByRole('heading', { name: 'Keys' }).waitFor()
      await look('keys')
      await page.keyboard.press('Escape')
      await page.keyboard.press('g')
      await page.keyboard.press('r')
      await heading(page, 'Rooms')
      await page.keyboard.press('g')
      await page.keyboard.press('o')
      await heading(page, 'Overview')
    },
  ],
  [
    'comes back by the browser’s own keys, and after a reload',
    async ({ page }) => {
      await page.goBack()
      await heading(page, 'Rooms')
      await page.reload()
      await heading(page, 'Rooms')
    },
  ],
  [
    'is told that an address leads nowhere',
    async ({ page, town }) => {
      await page.goto(`${town.alpha.server.baseUrl}${CONSOLE}#/elsewhere`)
      await heading(page, 'Nothing is here')
    },
  ],
]

export const END: readonly Step[] = [
  [
    'deactivates the spammer, types the name for it, and is asked for the password: the sign-in was a while ago',
    async ({ page, town, look }) => {
      await town.alpha.server.database.db.tx((tx) => tx.query('UPDATE web_session SET proven_at = proven_at - 900000'))
      await page.goto(
        `${town.alpha.server.baseUrl}${CONSOLE}#/users/${encodeURIComponent(`@mallory:${town.alpha.name}`)}`,
      )
      await heading(page, /^@mallory:/)
      await press(page, 'Deactivate')
      const button = inDialog(page).getByRole('button', { name: 'Deactivate' })
      expect(await button.isDisabled()).toBe(true)
      await look('deactivate')
      await inDialog(page).getByLabel(/^Type/).fill(`@mallory:${town.alpha.name}`)
      await button.click()
      await inDialog(page).getByRole('heading', { name: 'Is it you?' }).waitFor()
      await look('proof')
      await inDialog(page).getByLabel('Your password').fill('not this one')
      await inDialog(page).getByRole('button', { name: 'Go on' }).click()
      await inDialog(page).getByRole('alert').waitFor()
      await inDialog(page).getByLabel('Your password').fill(PASSWORD)
      await inDialog(page).getByRole('button', { name: 'Go on' }).click()
      await said(page, /is deactivated/)
      await page.getByText('deactivated', { exact: true }).waitFor()
    },
  ],
  [
    'deletes the room',
    async ({ page, town }) => {
      await page.goto(`${town.alpha.server.baseUrl}${CONSOLE}#/rooms/${encodeURIComponent(town.garden)}`)
      await press(page, 'Delete')
      await inDialog(page).getByLabel(/^Type/).fill('delete')
      await inDialog(page).getByRole('button', { name: 'Delete the room' }).click()
      await said(page, 'The room is being deleted.')
      await heading(page, 'Rooms')
    },
  ],
  [
    'signs out, and comes back to the sign-in page',
    async ({ page, town }) => {
      await press(page, 'Sign out')
      await page.waitForURL(/account/)
      await page.goto(town.alpha.server.baseUrl + CONSOLE)
      await page.waitForFunction('document.title !== ""')
    },
  ],
]

const SHAPES: readonly Shape[] = [
  { name: 'light', width: 1280, colorScheme: 'light' },
  { name: 'dark', width: 1280, colorScheme: 'dark' },
  { name: 'phone', width: 360, colorScheme: 'light' },
]

/** Looks at a page of the console in light and dark, and on a phone: nothing on it may keep somebody from using it. */
export async function lookAtConsole(page: Page, name: string): Promise<void> {
  await lookAt(page, name, SHAPES, async (which) => expect(await graveProblems(page), which).toEqual([]))
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.emulateMedia({ colorScheme: 'light' })
}
