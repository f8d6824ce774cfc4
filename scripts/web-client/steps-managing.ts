import { waitUntil } from '../../test/support/wait.ts'
import { type Cast, choose, composer, listed, openRoom, readAll, type Step, say, shows, step, tile } from './story.ts'

const PATIENCE = { timeout: 20_000 }
/** A number gives way to buttons below the pointer. */
const THERE = { state: 'attached', ...PATIENCE } as const
const ROOM = 'Hearthside'

/** Opens the menu of a room in the list. */
async function roomMenu({ page }: Cast, name: string, button: string): Promise<void> {
  await listed(page, name).hover(PATIENCE)
  await listed(page, name).getByRole('button', { name: button }).click(PATIENCE)
}

async function settings({ page }: Cast, tab: string): Promise<void> {
  await page.getByRole('button', { name: 'User menu' }).click(PATIENCE)
  await page.getByRole('menuitem', { name: 'All settings' }).click(PATIENCE)
  await page.getByTestId(`settings-tab-USER_${tab}_TAB`).click(PATIENCE)
}

const closeDialog = async ({ page }: Cast) => {
  await page.keyboard.press('Escape')
  await page.locator('.mx_Dialog_wrapper').waitFor({ state: 'detached', ...PATIENCE })
}

async function searchPeople({ page }: Cast, text: string): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.locator('#mx_SpotlightDialog_button_startChat').click(PATIENCE)
  await page.locator('.mx_SpotlightDialog_searchBox input').fill(text)
}

/** What people do with rooms and with other people. */
export const MANAGING: readonly Step[] = [
  step('Alice makes the room a favourite', async (cast) => {
    await roomMenu(cast, ROOM, 'Room options')
    await cast.page.locator('.mx_ContextualMenu').getByRole('menuitemcheckbox', { name: 'Favourite' }).click(PATIENCE)
    const favourites = cast.page.locator('.mx_RoomSublist', { hasText: 'Favourites' })
    await favourites.locator('.mx_RoomTile', { hasText: ROOM }).waitFor(PATIENCE)
    await cast.page.keyboard.press('Escape')
  }),
  step('Alice makes it an ordinary room again', async (cast) => {
    await roomMenu(cast, ROOM, 'Room options')
    await cast.page.locator('.mx_ContextualMenu').getByRole('menuitemcheckbox', { name: 'Favourited' }).click(PATIENCE)
    await cast.page.locator('.mx_RoomSublist', { hasText: 'Favourites' }).waitFor({ state: 'hidden', ...PATIENCE })
    await cast.page.keyboard.press('Escape')
  }),
  step('Alice mutes the room', async (cast) => {
    await roomMenu(cast, ROOM, 'Notification options')
    await cast.page.getByRole('menuitemradio', { name: 'Mute room' }).click(PATIENCE)
    await cast.page.goto(`${cast.site}/#/home`)
  }),
  step('the muted room is silent', async (cast) => {
    const { page, bob, roomId } = cast
    await bob.say(roomId, 'nobody hears this')
    await page
      .locator('.mx_RoomTile_titleHasUnreadEvents')
      .waitFor({ timeout: 3_000 })
      .catch(() => undefined)
    if ((await listed(page, ROOM).locator('.mx_NotificationBadge_count').count()) > 0)
      throw new Error('it has a number')
  }),
  step('Alice hears of mentions in it alone', async (cast) => {
    const { page, bob, roomId, alice } = cast
    await roomMenu(cast, ROOM, 'Notification options')
    await page.getByRole('menuitemradio', { name: 'Mentions & keywords' }).click(PATIENCE)
    await bob.say(roomId, 'nothing much')
    await bob.say(roomId, 'alice, really', { 'm.mentions': { user_ids: [alice.userId] } })
    await listed(page, ROOM).locator('.mx_NotificationBadge_level_highlight').waitFor(THERE)
  }),
  step('Alice hears of everything again', async (cast) => {
    await openRoom(cast.page, ROOM)
    await readAll(cast.page)
    await roomMenu(cast, ROOM, 'Notification options')
    await cast.page.getByRole('menuitemradio', { name: 'Match default setting' }).click(PATIENCE)
  }),
  step('Alice wants to hear of a word', async (cast) => {
    await settings(cast, 'NOTIFICATIONS')
    const field = cast.page.locator('.mx_TagComposer input')
    await field.fill('cake')
    await cast.page.locator('.mx_TagComposer').getByRole('button', { name: 'Add' }).click(PATIENCE)
    await cast.page.locator('.mx_Tag', { hasText: 'cake' }).waitFor(PATIENCE)
    await closeDialog(cast)
  }),
  step('the word is heard of in a room where only mentions are', async (cast) => {
    const { page, bob, roomId, site } = cast
    await roomMenu(cast, ROOM, 'Notification options')
    await page.getByRole('menuitemradio', { name: 'Mentions & keywords' }).click(PATIENCE)
    await page.goto(`${site}/#/home`)
    await bob.say(roomId, 'nothing in particular')
    await bob.say(roomId, 'there is cake')
    const number = listed(page, ROOM).locator('.mx_NotificationBadge_count', { hasText: /^1$/ })
    await number.waitFor(THERE)
    await openRoom(page, ROOM)
    await readAll(page)
    await roomMenu(cast, ROOM, 'Notification options')
    await page.getByRole('menuitemradio', { name: 'Match default setting' }).click(PATIENCE)
  }),
  step('Alice finds Carol by the search for people', async (cast) => {
    await cast.carol.ask('setDisplayName', 'Carol of the Bells')
    await waitUntil('Carol to be found', async () => {
      await searchPeople(cast, 'bells')
      const found = cast.page.locator('.mx_SpotlightDialog_option', { hasText: 'Carol of the Bells' }).first()
      const isFound = await found.waitFor({ timeout: 4_000 }).then(
        () => true,
        () => false,
      )
      if (!isFound) await closeDialog(cast)
      return isFound
    })
  }),
  step('Alice writes to her directly', async (cast) => {
    const { page, carol } = cast
    await page.locator('.mx_SpotlightDialog_option', { hasText: 'Carol of the Bells' }).first().click(PATIENCE)
    await say(page, 'hello Carol')
    await waitUntil('the invitation', () =>
      carol.page.evaluate(`client.getRooms().some((room) => room.getMyMembership() === 'invite')`),
    )
  }),
  step('Carol joins, and answers', async ({ page, carol }) => {
    const id = await carol.page.evaluate<string>(
      `client.getRooms().find((room) => room.getMyMembership() === 'invite').roomId`,
    )
    await carol.ask('joinRoom', id)
    await page
      .getByText(/Carol of the Bells joined/)
      .first()
      .waitFor(PATIENCE)
  }),
  step('Alice finds it in the directory', async (cast) => {
    const { page } = cast
    await page.getByRole('button', { name: 'Explore rooms' }).first().click(PATIENCE)
    await page.locator('.mx_SpotlightDialog_searchBox input').fill('open')
    await page.locator('.mx_SpotlightDialog_option', { hasText: 'Open house' }).first().waitFor(PATIENCE)
  }),
  step('Alice reads it without joining', async ({ page }) => {
    const room = page.locator('.mx_SpotlightDialog_option', { hasText: 'Open house' }).first()
    await room
      .getByText(/View|Preview/)
      .click(PATIENCE)
      .catch(() => room.click(PATIENCE))
    await shows(page, 'for all to read')
  }),
  step('what is said meanwhile comes too', async ({ page, bob, notes }) => {
    await bob.say(notes.get('open')!, 'while you look')
    await shows(page, 'while you look')
  }),
  step('Alice joins it', async ({ page }) => {
    await page.getByRole('button', { name: /Join the (?:discussion|room)/ }).click(PATIENCE)
    await composer(page).waitFor(PATIENCE)
    await say(page, 'here I am')
  }),
  step('Alice reports a message', async (cast) => {
    const { page, carol, roomId } = cast
    await carol.say(roomId, 'something rude')
    await openRoom(page, ROOM)
    await shows(page, 'something rude')
    await choose(page, 'something rude', 'Report')
    await page.locator('.mx_ReportEventDialog textarea, .mx_ReportEventDialog input[type="text"]').first().fill('rude')
    await page.getByRole('button', { name: 'Send report' }).click(PATIENCE)
    await page
      .locator('.mx_ReportEventDialog')
      .first()
      .waitFor({ state: 'detached', ...PATIENCE })
  }),
  step('Bob reports the room', async ({ bob, roomId }) => {
    await bob.ask('reportRoom', roomId, 'noisy')
  }),
  step('Alice ignores Carol', async ({ page }) => {
    await tile(page, 'something rude').locator('.mx_EventTile_avatar').first().click(PATIENCE)
    await page.locator('.mx_UserInfo').getByRole('button', { name: 'Ignore' }).click(PATIENCE)
    await page.getByRole('button', { name: 'Ignore' }).last().click(PATIENCE)
    await page.locator('.mx_UserInfo').getByRole('button', { name: 'Unignore' }).waitFor(PATIENCE)
  }),
  step('Alice does not see what Carol says', async ({ page, bob, carol, roomId }) => {
    await carol.say(roomId, 'listen to me')
    await bob.say(roomId, 'after that')
    await shows(page, 'after that')
    if ((await tile(page, 'listen to me').count()) > 0) throw new Error('it is there')
  }),
  step('Alice listens to her again', async (cast) => {
    await settings(cast, 'SECURITY')
    await cast.page.locator('.mx_SecurityUserSettingsTab_ignoredUser').getByRole('button').click(PATIENCE)
    await cast.page.getByText('You have no ignored users').waitFor(PATIENCE)
    await closeDialog(cast)
  }),
  step('Alice changes her name', async (cast) => {
    const { page, bob, roomId, alice } = cast
    await settings(cast, 'ACCOUNT')
    const field = page.locator('.mx_UserProfileSettings_profile_displayName input')
    await field.fill('Alice in Chains')
    await field.press('Enter')
    await bob.page.waitForFunction(
      `client.getRoom('${roomId}').getMember('${alice.userId}').name === 'Alice in Chains'`,
      undefined,
      PATIENCE,
    )
    await closeDialog(cast)
  }),
  step('Alice looks at her sessions', async (cast) => {
    await settings(cast, 'SESSION_MANAGER')
    await cast.page
      .locator('.mx_CurrentDeviceSection, [data-testid="current-session-section"]')
      .first()
      .waitFor(PATIENCE)
    await closeDialog(cast)
  }),
  step('Alice writes down what the room is about', async ({ page, bob, roomId }) => {
    await say(page, '/topic All that is warm')
    await bob.page.waitForFunction(
      `client.getRoom('${roomId}').currentState.getStateEvents('m.room.topic', '')?.getContent().topic === 'All that is warm'`,
      undefined,
      PATIENCE,
    )
  }),
  step('Alice upgrades the room', async ({ page, notes, roomId }) => {
    await say(page, '/upgraderoom 12')
    await page.getByRole('button', { name: 'Upgrade' }).last().click(PATIENCE)
    await page.locator('.mx_Dialog_wrapper').waitFor({ state: 'detached', timeout: 30_000 })
    notes.set('old', roomId)
  }),
  step('the old room leads to the new one', async (cast) => {
    const { page, site, notes, bob } = cast
    const old = notes.get('old')!
    await page.goto(`${site}/#/room/${old}`)
    await page.locator('.mx_RoomStatusBar, .mx_MessageComposer_replaced_wrapper').first().waitFor(PATIENCE)
    cast.roomId = await bob.page.evaluate<string>(
      `client.getRoom('${old}').currentState.getStateEvents('m.room.tombstone', '').getContent().replacement_room`,
    )
    await page.locator('.mx_MessageComposer_roomReplaced_link').click(PATIENCE)
    await composer(page).waitFor(PATIENCE)
  }),
  step('Bob follows', async ({ page, bob, roomId }) => {
    await waitUntil('the invitation', () =>
      bob.page.evaluate(`client.getRoom('${roomId}')?.getMyMembership() === 'invite'`),
    ).catch(() => undefined)
    await bob.ask('joinRoom', roomId)
    await bob.say(roomId, 'a new place')
    await shows(page, 'a new place')
  }),
  step('the page is loaded again, and is as it was', async ({ page }) => {
    await page.reload()
    await composer(page).waitFor({ timeout: 40_000 })
    await shows(page, 'a new place')
  }),
  step('Alice leaves a room', async (cast) => {
    await roomMenu(cast, 'Open house', 'Room options')
    await cast.page.getByRole('menuitem', { name: 'Leave' }).click(PATIENCE)
    await cast.page.getByRole('button', { name: 'Leave' }).last().click(PATIENCE)
    await listed(cast.page, 'Open house').waitFor({ state: 'detached', ...PATIENCE })
  }),
  step('Alice signs out', async ({ page }) => {
    await page.getByRole('button', { name: 'User menu' }).click(PATIENCE)
    await page.getByRole('menuitem', { name: 'Sign out' }).click(PATIENCE)
    await page
      .locator('.mx_Dialog')
      .getByRole('button', { name: /sign out|don't want/i })
      .first()
      .click({ timeout: 5_000 })
      .catch(() => undefined)
    await page.locator('#mx_LoginForm_username').waitFor({ timeout: 30_000 })
  }),
]
