import type { Page } from 'playwright-core'
import type { Api } from '../../test/support/api.ts'
import type { Album, Friend } from './people.ts'

/** What the steps of the story share. */
export interface Cast {
  /** Alice's page: the whole client. */
  readonly page: Page
  readonly site: string
  readonly homeserver: string
  readonly album: Album
  /** Each in a page with matrix-js-sdk. Bob talks; Carol is the one who is ignored. */
  readonly bob: Friend
  readonly carol: Friend
  readonly alice: { readonly userId: string; readonly name: string; readonly password: string }
  readonly api: Api
  /** The room of the story, from when it is made. */
  roomId: string
  /** Whether the step that runs has failed. */
  failed: boolean
  /** What later steps need of earlier ones. */
  readonly notes: Map<string, string>
}

export interface Step {
  readonly name: string
  run(cast: Cast): Promise<void>
}

export const step = (name: string, run: Step['run']): Step => ({ name, run })

const PATIENCE = { timeout: 20_000 }

export const composer = (page: Page) => page.locator('.mx_RoomView_body .mx_BasicMessageComposer_input').first()
export const threadComposer = (page: Page) => page.locator('.mx_ThreadView .mx_BasicMessageComposer_input')

export async function say(page: Page, text: string): Promise<void> {
  const input = composer(page)
  await input.click(PATIENCE)
  await input.pressSequentially(text, { delay: 5 })
  await input.press('Enter')
}

/** A message of the open room. */
export const tile = (page: Page, text: string) =>
  page.locator('.mx_RoomView_timeline .mx_EventTile', { hasText: text }).last()

/** Presses a button of the bar over a message. */
export async function act(page: Page, text: string, button: string): Promise<void> {
  const message = tile(page, text)
  await message.scrollIntoViewIfNeeded(PATIENCE)
  await message.locator('.mx_EventTile_line').first().hover(PATIENCE)
  await message.getByRole('button', { name: button, exact: true }).first().click(PATIENCE)
}

/** Chooses an item of the menu of a message. */
export async function choose(page: Page, text: string, item: string): Promise<void> {
  await act(page, text, 'Options')
  await page.getByRole('menuitem', { name: item }).click(PATIENCE)
}

export async function shows(page: Page, text: string): Promise<void> {
  await tile(page, text).waitFor(PATIENCE)
}

/** A room in the list at the left. */
export const listed = (page: Page, name: string) => page.locator('.mx_RoomTile', { hasText: name }).first()

export async function openRoom(page: Page, name: string): Promise<void> {
  await listed(page, name).click(PATIENCE)
  await composer(page).waitFor(PATIENCE)
}

/** Goes to the end of a room, which reads everything. */
export async function readAll(page: Page): Promise<void> {
  await composer(page).click(PATIENCE)
  await page.keyboard.press('Escape')
}

/** Closes what asks for attention in a corner. */
export async function dismissToasts(page: Page): Promise<void> {
  const news = page.getByText('Threads notifications have moved')
  const close = page.getByRole('button', { name: 'OK', exact: true })
  await page.addLocatorHandler(news, () => close.click({ timeout: 2_000 }).catch(() => undefined))
  for (let tries = 0; tries < 5; tries++) {
    const toast = page.locator('.mx_Toast_toast').getByRole('button', { name: /Later|Dismiss|Ignore|No|OK/ })
    if ((await toast.count()) === 0) return
    await toast
      .first()
      .click({ timeout: 2_000 })
      .catch(() => undefined)
  }
}
