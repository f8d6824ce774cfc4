import { join } from 'node:path'
import { waitUntil } from '../../test/support/wait.ts'
import type { Seen } from './people.ts'
import {
  act,
  type Cast,
  choose,
  composer,
  dismissToasts,
  listed,
  openRoom,
  readAll,
  type Step,
  say,
  shows,
  step,
  threadComposer,
  tile,
} from './story.ts'

const PATIENCE = { timeout: 20_000 }
/** A number gives way to buttons below the pointer. */
const THERE = { state: 'attached', ...PATIENCE } as const
const ROOM = 'Hearthside'

const isText = (body: string) => (event: Seen) => event.body === body && !event.redacted

const thread = (rootId: string) => ({ 'm.relates_to': { rel_type: 'm.thread', event_id: rootId } })

/** The number of a room's badge; undefined without one. */
async function badge({ page }: Cast, name: string): Promise<string | undefined> {
  const [count] = await listed(page, name).locator('.mx_NotificationBadge_count').allTextContents()
  return count || undefined
}

/** The room that Alice is in, by the address of the page. */
const openedRoom = ({ page }: Cast): string | undefined =>
  /#\/room\/(![^/?]+)/.exec(decodeURIComponent(page.url()))?.[1]

/** What people say to each other. */
export const TALKING: readonly Step[] = [
  step('the page asks for a user name and a password', async ({ page, site }) => {
    await page.goto(site)
    await page.locator('#mx_LoginForm_username').waitFor({ timeout: 20_000 })
  }),
  step('Alice signs in', async ({ page, alice }) => {
    await page.locator('#mx_LoginForm_username').fill(alice.name)
    await page.locator('#mx_LoginForm_password').fill(alice.password)
    await page.getByRole('button', { name: 'Sign in' }).click(PATIENCE)
    await page.locator('.mx_LeftPanel_roomListContainer').waitFor({ timeout: 40_000 })
  }),
  step('what asks for attention is put off', async ({ page }) => dismissToasts(page)),
  step('Bob gives himself a name', async ({ bob }) => {
    await bob.ask('setDisplayName', 'Robert the Bruce')
  }),
  step('Bob opens a room to the world', async ({ bob, notes }) => {
    const { room_id } = await bob.ask<{ room_id: string }>('createRoom', {
      ...{ name: 'Open house', topic: 'Come and see', visibility: 'public', preset: 'public_chat' },
      room_alias_name: 'open-house',
      initial_state: [
        { type: 'm.room.history_visibility', state_key: '', content: { history_visibility: 'world_readable' } },
      ],
    })
    notes.set('open', room_id)
    await bob.say(room_id, 'for all to read')
  }),
  step('Alice makes a room', async (cast) => {
    const { page } = cast
    await page.getByRole('button', { name: 'Add room' }).first().click(PATIENCE)
    await page.getByRole('menuitem', { name: 'New room' }).click(PATIENCE)
    await page.getByRole('textbox', { name: 'Name' }).fill(ROOM)
    const encrypted = page.getByRole('switch', { name: /end-to-end encryption/ })
    if ((await encrypted.getAttribute('aria-checked')) === 'true') await encrypted.click(PATIENCE)
    await page.getByRole('button', { name: 'Create room' }).click(PATIENCE)
    await composer(page).waitFor(PATIENCE)
    cast.roomId = await waitUntil('the room', () => openedRoom(cast))
  }),
  step('Alice says something', async ({ page }) => {
    await say(page, 'is the fire lit?')
    await shows(page, 'is the fire lit?')
  }),
  step('Alice finds Bob by his name, and invites him', async ({ page }) => {
    await say(page, '/invite @carol:localhost')
    await page.getByRole('button', { name: 'Room info' }).first().click(PATIENCE)
    await page.getByRole('menuitem', { name: 'Invite' }).click(PATIENCE)
    await page.locator('.mx_InviteDialog_editor input').pressSequentially('robert', { delay: 30 })
    await page.locator('.mx_InviteDialog_tile--room', { hasText: 'Robert the Bruce' }).first().click(PATIENCE)
    await page.locator('.mx_InviteDialog_goButton').click(PATIENCE)
    await page.locator('.mx_InviteDialog_editor').waitFor({ state: 'detached', ...PATIENCE })
  }),
  step('Bob and Carol join', async ({ page, bob, carol, roomId }) => {
    for (const friend of [bob, carol]) {
      await waitUntil('the invitation', () => friend.page.evaluate(`client.getRoom('${roomId}') !== null`))
      await friend.ask('joinRoom', roomId)
    }
    await page.locator('.mx_FacePile', { hasText: '3' }).first().waitFor(PATIENCE)
  }),
  step('Bob answers', async ({ page, bob, roomId }) => {
    await bob.say(roomId, 'since noon')
    await shows(page, 'since noon')
  }),
  step('Alice edits what she said', async ({ page }) => {
    await say(page, 'cmoe in')
    await shows(page, 'cmoe in')
    await act(page, 'cmoe in', 'Edit')
    const editor = page.locator('.mx_EditMessageComposer .mx_BasicMessageComposer_input')
    await editor.press('Control+a')
    await editor.pressSequentially('come in', { delay: 5 })
    await editor.press('Enter')
    await page.locator('.mx_EventTile', { hasText: '(edited)' }).first().waitFor(PATIENCE)
  }),
  step('Bob sees the edit', async ({ bob, roomId }) => {
    await bob.sees('the edit', roomId, isText('come in'))
  }),
  step('Alice looks at what it was before', async ({ page }) => {
    await page.locator('.mx_EventTile_edited').first().click(PATIENCE)
    await page.locator('.mx_MessageEditHistoryDialog .mx_EventTile').first().waitFor(PATIENCE)
    await page.getByRole('button', { name: 'Close dialog' }).click(PATIENCE)
  }),
  step('Alice reacts', async ({ page }) => {
    await act(page, 'since noon', 'React')
    await page.locator('.mx_EmojiPicker_item', { hasText: '👍' }).first().click(PATIENCE)
    await page.locator('.mx_ReactionsRowButton').first().waitFor(PATIENCE)
  }),
  step('Bob reacts with the same, and both are counted', async ({ page, bob, roomId }) => {
    const { id } = await bob.sees('the message', roomId, isText('since noon'))
    const key = await page.locator('.mx_ReactionsRowButton_content').first().textContent()
    const relation = { rel_type: 'm.annotation', event_id: id, key }
    await bob.ask('sendEvent', roomId, 'm.reaction', { 'm.relates_to': relation })
    await page.locator('.mx_ReactionsRowButton_count', { hasText: '2' }).waitFor(PATIENCE)
  }),
  step('Alice takes her reaction back', async ({ page }) => {
    await page.locator('.mx_ReactionsRowButton').first().click(PATIENCE)
    await page.locator('.mx_ReactionsRowButton_count', { hasText: '1' }).waitFor(PATIENCE)
  }),
  step('Alice replies', async ({ page, bob, roomId }) => {
    await act(page, 'since noon', 'Reply')
    await say(page, 'good')
    await bob.sees('the reply', roomId, (event) => event.body?.endsWith('good') === true)
    await page.locator('.mx_ReplyTile').first().waitFor(PATIENCE)
  }),
  step('Alice begins a thread', async ({ page, bob, roomId, notes }) => {
    const root = await bob.say(roomId, 'let us discuss')
    notes.set('root', root)
    await shows(page, 'let us discuss')
    await act(page, 'let us discuss', 'Reply in thread')
    await threadComposer(page).click(PATIENCE)
    await threadComposer(page).pressSequentially('in a thread', { delay: 5 })
    await threadComposer(page).press('Enter')
    await page.locator('.mx_ThreadView .mx_EventTile', { hasText: 'in a thread' }).waitFor(PATIENCE)
  }),
  step('Bob replies in the thread', async ({ page, bob, roomId, notes }) => {
    await bob.say(roomId, 'and another', thread(notes.get('root')!))
    await page.locator('.mx_ThreadView .mx_EventTile', { hasText: 'and another' }).waitFor(PATIENCE)
  }),
  step('the room shows the newest reply below the message', async ({ page }) => {
    await page.locator('.mx_ThreadSummary', { hasText: 'and another' }).waitFor(PATIENCE)
  }),
  step('Alice edits a reply in the thread, and reacts to another', async ({ page, bob, roomId }) => {
    const reply = page.locator('.mx_ThreadView .mx_EventTile', { hasText: 'in a thread' }).last()
    await reply.hover(PATIENCE)
    await reply.getByRole('button', { name: 'Edit' }).click(PATIENCE)
    const editor = page.locator('.mx_ThreadView .mx_EditMessageComposer .mx_BasicMessageComposer_input')
    await editor.press('Control+a')
    await editor.pressSequentially('inside the thread', { delay: 5 })
    await editor.press('Enter')
    await page.locator('.mx_ThreadView .mx_EventTile', { hasText: 'inside the thread' }).waitFor(PATIENCE)
    await bob.page.waitForFunction(`client.getRoom('${roomId}').getThreads()[0]?.length >= 2`, undefined, PATIENCE)
  }),
  step('the list of threads has it', async ({ page }) => {
    await page.locator('.mx_RoomHeader').getByRole('button', { name: 'Threads' }).click(PATIENCE)
    await page.locator('.mx_ThreadPanel .mx_EventTile', { hasText: 'let us discuss' }).waitFor(PATIENCE)
  }),
  step('the list of her own threads has it too', async ({ page }) => {
    await page.locator('.mx_ThreadPanel_dropdown').click(PATIENCE)
    await page.getByRole('menuitemradio', { name: /My threads/ }).click(PATIENCE)
    await page.locator('.mx_ThreadPanel .mx_EventTile', { hasText: 'let us discuss' }).waitFor(PATIENCE)
    await page.locator('.mx_BaseCard_header [data-testid="base-card-close-button"]').click(PATIENCE)
  }),
  step('a reply in the thread leaves the room without a number, and marks the thread', async (cast) => {
    const { page, bob, roomId, notes } = cast
    await bob.say(roomId, 'are you there?', thread(notes.get('root')!))
    await page.locator('.mx_ThreadSummary', { hasText: 'are you there?' }).waitFor(PATIENCE)
  }),
  step('Alice reads the thread', async ({ page }) => {
    await page.locator('.mx_ThreadSummary').first().click(PATIENCE)
    await page.locator('.mx_ThreadView .mx_EventTile', { hasText: 'are you there?' }).waitFor(PATIENCE)
    await page.locator('.mx_BaseCard_header [data-testid="base-card-close-button"]').click(PATIENCE)
  }),
  step('Alice removes a message', async ({ page }) => {
    await say(page, 'a slip of the tongue')
    await choose(page, 'a slip of the tongue', 'Remove')
    await page.getByRole('button', { name: 'Remove' }).last().click(PATIENCE)
    await page.locator('.mx_RedactedBody').first().waitFor(PATIENCE)
  }),
  step('Bob sees it removed', async ({ bob, roomId }) => {
    await bob.sees('the redaction', roomId, ({ redacted }) => redacted)
  }),
  step('Alice sends a picture', async ({ page, bob, roomId, site, album }) => {
    await page.goto(`${site}/#/room/${roomId}`)
    const chooser = page.locator('.mx_MessageComposer input[type="file"]').first()
    await chooser.setInputFiles(join(album.folder, '01-the-page-asks-for-a-user-name-and-a-password.png'))
    await page.getByRole('button', { name: 'Upload' }).click(PATIENCE)
    await page.locator('.mx_MImageBody img').first().waitFor(PATIENCE)
    await bob.sees('the picture', roomId, ({ body }) => body?.endsWith('.png') === true)
  }),
  step('Alice mentions Bob', async ({ page, bob, roomId }) => {
    await composer(page).click(PATIENCE)
    await composer(page).pressSequentially('@Rob', { delay: 40 })
    await page.locator('.mx_Autocomplete_Completion', { hasText: 'Robert the Bruce' }).first().click(PATIENCE)
    await composer(page).pressSequentially('look!', { delay: 5 })
    await composer(page).press('Enter')
    await page.locator('.mx_Pill', { hasText: 'Robert the Bruce' }).first().waitFor(PATIENCE)
    await bob.page.waitForFunction(
      `client.getRoom('${roomId}').getUnreadNotificationCount('highlight') > 0`,
      undefined,
      PATIENCE,
    )
  }),
  step('Alice pins a message', async ({ page }) => {
    await act(page, 'is the fire lit?', 'Pin')
    await page.locator('.mx_PinnedMessageBanner').waitFor(PATIENCE)
  }),
  step('Alice asks for votes, and Bob votes', async ({ page, bob, roomId }) => {
    const answers = ['tea', 'cocoa'].map((text) => ({ id: text, 'org.matrix.msc1767.text': text }))
    const question = { 'org.matrix.msc1767.text': 'what shall we drink?' }
    const start = { question, answers, kind: 'org.matrix.msc3381.poll.disclosed', max_selections: 1 }
    const content = { 'org.matrix.msc3381.poll.start': start, 'org.matrix.msc1767.text': 'what shall we drink?' }
    const { event_id } = await bob.ask<{ event_id: string }>(
      'sendEvent',
      roomId,
      'org.matrix.msc3381.poll.start',
      content,
    )
    await page.locator('.mx_MPollBody', { hasText: 'what shall we drink?' }).waitFor(PATIENCE)
    await bob.ask('sendEvent', roomId, 'org.matrix.msc3381.poll.response', {
      'm.relates_to': { rel_type: 'm.reference', event_id },
      'org.matrix.msc3381.poll.response': { answers: ['tea'] },
    })
    await page.locator('.mx_MPollBody', { hasText: '1 vote' }).waitFor(PATIENCE)
  }),
  step('Alice searches for what was said', async ({ page, carol, roomId }) => {
    await carol.say(roomId, 'the hedgehog crossed the road')
    await readAll(page)
    await shows(page, 'hedgehog')
    await page.getByRole('button', { name: 'Room info' }).first().click(PATIENCE)
    const field = page.locator('.mx_RoomSummaryCard_search input')
    await waitUntil('the message to be found', async () => {
      await field.fill('hedgehog')
      await field.press('Enter')
      const found = page.locator('.mx_RoomView_searchResultsPanel .mx_EventTile', { hasText: 'hedgehog' })
      return found
        .first()
        .waitFor({ timeout: 3_000 })
        .then(
          () => true,
          () => false,
        )
    })
  }),
  step('Alice searches for what nobody said', async ({ page }) => {
    const field = page.locator('.mx_RoomSummaryCard_search input')
    await field.fill('elephant')
    await field.press('Enter')
    await page.locator('.mx_RoomView_topMarker', { hasText: 'No results' }).waitFor(PATIENCE)
    await page.locator('.mx_RoomSearchAuxPanel').getByRole('button', { name: 'Cancel' }).click(PATIENCE)
  }),
  step('away from the room, its number grows with what Bob says', async (cast) => {
    const { page, bob, roomId, site } = cast
    await page.goto(`${site}/#/home`)
    await bob.say(roomId, 'hello?')
    await bob.say(roomId, 'anybody?')
    await waitUntil('a badge', async () => (await badge(cast, ROOM)) !== undefined)
  }),
  step('a mention stands out', async ({ page, bob, roomId, alice }) => {
    await bob.say(roomId, 'alice: come', { 'm.mentions': { user_ids: [alice.userId] } })
    await listed(page, ROOM).locator('.mx_NotificationBadge_level_highlight').waitFor(THERE)
  }),
  step('the number goes when Alice reads', async (cast) => {
    await openRoom(cast.page, ROOM)
    await tile(cast.page, 'alice: come').waitFor(PATIENCE)
    // At first it shows where she stopped reading.
    await readAll(cast.page)
    await waitUntil('no badge', async () => (await badge(cast, ROOM)) === undefined)
  }),
]
