import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { EventId, RoomId } from '../../src/core/ids.ts'
import { MAX_MESSAGES_IN_MAIL, MAX_ROOMS_IN_MAIL } from '../../src/domain/limits/mails.ts'
import { insertUserThreepid } from '../../src/store/accounts/user-threepids.ts'
import { type Account, type Api, createRoom, join, openApi, register, sendText } from '../support/api.ts'
import { chromiumPath, openBrowser } from '../support/browser.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'
import { waitUntil } from '../support/wait.ts'

const MINUTE = 60_000
/** Where pictures of the pages and of the mail go; nowhere without it. */
const pictures = process.env.PICTURES

let smtp: SmtpSink
let refusal: Error | null = null
let server: TestServer
let api: Api
let alice: Account
let bob: Account
let email: string
let room: string
let ahead = 0
let serial = 0

beforeAll(async () => {
  smtp = await startSmtp({ hideSTARTTLS: true }, () => refusal)
  const mail = { from: 'hearth@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' as const } }
  server = await startServer({ identity: { mail, brand: 'The Harbour' } }, { clock: { now: () => Date.now() + ahead } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  await api.call('PUT', `/profile/${alice.userId}/displayname`, {
    token: alice.token,
    body: { displayname: 'Alice <3' },
  })
})

afterAll(async () => {
  await api?.close()
  await server?.close()
  await smtp?.close()
})

beforeEach(async () => {
  serial += 1
  bob = await register(api, `bob${serial}`)
  room = await openRoom('Harbour & sea')
  await giveAddress(`bob${serial}@example.org`)
})

/** Gives the user an address, as if they had proved that it is theirs. */
async function giveAddress(address: string): Promise<void> {
  email = address
  const { db } = server.database
  const [{ user_nid } = { user_nid: 0 }] = await db.query<{ user_nid: number }>(
    'SELECT user_nid FROM matrix_user WHERE user_id = $1',
    [bob.userId],
  )
  const threepid = { medium: 'email', address: email, validated_at: 1, added_at: 1 } as const
  await db.tx((tx) => insertUserThreepid(tx, user_nid, threepid, 10))
}

async function openRoom(name: string): Promise<string> {
  const opened = await createRoom(api, alice.token, { preset: 'public_chat', name })
  await join(api, bob.token, opened)
  return opened
}
const setMails = (lang = 'en', more: object = {}) =>
  api.call('POST', '/pushers/set', {
    token: bob.token,
    body: {
      ...{ kind: 'email', app_id: 'm.email', pushkey: email, app_display_name: 'Mail', device_display_name: email },
      ...{ lang, data: {}, ...more },
    },
  })
const say = (text: string, where = room, by = alice) => sendText(api, by.token, where, `${text} ${serial}`, text)
const read = (eventId: string, where = room) =>
  api.call('POST', `/rooms/${encodeURIComponent(where)}/receipt/m.read/${encodeURIComponent(eventId)}`, {
    token: bob.token,
    body: {},
  })
const mails = () =>
  smtp.mails.filter(({ to }) => to[0] === email).map(({ raw }) => decodeQuotedPrintable(raw).replaceAll('\r\n', '\n'))
const mailed = (count = 1) =>
  waitUntil(`${count} mails to ${email}`, () => {
    const found = mails()
    return found.length >= count && found
  })
/** Whether something of the user's pusher waits to be mailed. */
async function waits(): Promise<boolean> {
  const [row] = await server.database.db.query<{ lags: boolean }>('SELECT lags FROM pusher WHERE pushkey = $1', [email])
  return row?.lags === true
}
/** In how many minutes the next mail is due. */
async function dueIn(): Promise<number> {
  const rows = await server.database.db.query<{ retry_at: number }>('SELECT retry_at FROM pusher WHERE pushkey = $1', [
    email,
  ])
  return Math.round((rows[0]!.retry_at - Date.now() - ahead) / MINUTE)
}
const noticed = () => waitUntil('a mail that is due later', waits)
const settled = () => waitUntil('nothing that is due', async () => !(await waits()))
const linkIn = (mail: string): string => /http:\/\/\S+unsubscribe\?token=[\w.%-]+/.exec(mail)?.[0] ?? 'no link'
const shoot = async (path: string, name: string, content?: string) => {
  if (chromiumPath() === undefined) return
  const browser = await openBrowser()
  try {
    const context = await browser.newContext({ viewport: { width: 390, height: 780 } })
    const page = await context.newPage()
    if (content === undefined) await page.goto(path)
    else await page.setContent(content)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      if (pictures !== undefined) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}.png` })
    }
  } finally {
    await browser.close()
  }
}

describe('a mail about unread messages', () => {
  it('comes after ten minutes, and says what is unread where', async () => {
    await setMails()
    await say('hello <there>')
    const other = await openRoom('')
    const path = `/rooms/${encodeURIComponent(other)}/send/m.room.encrypted/e${serial}`
    await api.call('PUT', path, { token: alice.token, body: { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'x' } })
    for (let index = 0; index < MAX_MESSAGES_IN_MAIL + 2; index++) await say(`text ${index}`)
    await createRoom(api, alice.token, { name: 'Cellar', invite: [bob.userId] })
    await noticed()
    expect(mails()).toEqual([])
    ahead += 11 * MINUTE
    const [mail = ''] = await mailed()
    expect(mail).toContain('Subject: Unread messages at The Harbour')
    expect(mail.replace(/\n /g, ' ')).toContain(`List-Unsubscribe: <${linkIn(mail)}>`)
    expect(mail).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
    expect(mail).toContain('Harbour & sea\n  Alice <3: hello <there>\n  Alice <3: text 0')
    expect(mail).toContain(`and ${8 - MAX_MESSAGES_IN_MAIL} more`)
    expect(mail).toContain('Alice <3: an encrypted message')
    expect(mail).toContain('Cellar\n  Alice <3: has invited you')
    expect(mail).toContain('hello &#60;there&#62;')
    const html = mail.slice(mail.indexOf('<!doctype html>'), mail.indexOf('</html>') + 7)
    await shoot('', 'unread-mail', html)
  })

  it('does not come for what was read or redacted meanwhile', async () => {
    await setMails()
    const first = await say('read')
    await noticed()
    await read(first)
    const second = await say('redacted')
    const path = `/rooms/${encodeURIComponent(room)}/redact/${encodeURIComponent(second)}/r${serial}`
    await api.call('PUT', path, { token: alice.token, body: {} })
    ahead += 11 * MINUTE
    await settled()
    await say('later')
    await noticed()
    ahead += 11 * MINUTE
    const [mail = ''] = await mailed()
    expect(mail).toContain('later')
    expect(mails()).toHaveLength(1)
    expect(mail).not.toMatch(/read\n|redacted/)
  })

  it('waits while the user reads elsewhere', async () => {
    await setMails()
    const other = await openRoom('elsewhere')
    const eventId = await say('read elsewhere', other)
    await say('here')
    await noticed()
    ahead += 9 * MINUTE
    expect(await dueIn()).toBe(1)
    await read(eventId, other)
    await waitUntil('ten minutes from the last reading', async () => (await dueIn()) === 10)
    ahead += 11 * MINUTE
    const [mail = ''] = await mailed()
    expect(mail).toContain('here')
    expect(mail).not.toContain('read elsewhere')
  })

  it('does not wait when history is removed', async () => {
    await setMails()
    const other = await openRoom('elsewhere')
    const last = await say('last', other)
    await say('here')
    await noticed()
    ahead += 9 * MINUTE
    expect(await dueIn()).toBe(1)
    await server.services.admin.historyPurges.begin(other as RoomId, { eventId: last as EventId }, true)
    ahead += 2 * MINUTE
    expect((await mailed())[0]).toContain('here')
  })

  it('is followed by others less and less often, until the user reads', async () => {
    await setMails()
    const pauses: number[] = []
    for (let round = 0; round < 3; round++) {
      await say(`round ${round}`)
      await noticed()
      pauses.push(await dueIn())
      ahead += pauses.at(-1)! * MINUTE + 1_000
      await mailed(round + 1)
      await settled()
    }
    expect(pauses).toEqual([10, 20, 40])
    expect(mails()[2]).toContain('round 2')
    expect(mails()[2]).not.toContain('round 1')
    await read(await say('read'))
    await settled()
    await say('again')
    await noticed()
    ahead += 11 * MINUTE
    await mailed(4)
  })

  it('is in the language of the pusher, and survives a restart and a mail server that is down', async () => {
    await setMails('de-AT')
    refusal = new Error('not now')
    await say('Servus')
    await noticed()
    await server.restart()
    ahead += 11 * MINUTE
    const failures = async () =>
      (
        await server.database.db.query<{ failures: number }>('SELECT failures FROM pusher WHERE pushkey = $1', [email])
      )[0]!.failures
    await waitUntil('a failure', async () => (await failures()) > 0)
    refusal = null
    ahead += 2 * MINUTE
    const [mail = ''] = await mailed()
    expect(mail).toContain('Ungelesene Nachrichten bei The Harbour')
    await waitUntil('no failure', async () => (await failures()) === 0)
  })

  it('shows a limited number of rooms', async () => {
    await setMails()
    for (let index = 0; index < MAX_ROOMS_IN_MAIL + 2; index++) await say('x', await openRoom(`Room ${index}`))
    await noticed()
    ahead += 11 * MINUTE
    const [mail = ''] = await mailed()
    expect(mail).toContain(`Room ${MAX_ROOMS_IN_MAIL - 1}\n`)
    expect(mail).not.toContain(`Room ${MAX_ROOMS_IN_MAIL}\n`)
    expect(mail).toContain('There is more in 2 other rooms.')
  })

  it('does not come once the address is removed from the account', async () => {
    await setMails()
    await say('gone')
    await noticed()
    const body = { medium: 'email', address: email }
    await api.call('POST', '/account/3pid/delete', { token: bob.token, body })
    expect((await api.call('GET', '/pushers', { token: bob.token })).pushers).toEqual([])
    // Whatever was due before the mail of another user has been dealt with when that is there.
    const former = mails
    const addressed = email
    bob = await register(api, `other${serial}`)
    await giveAddress(`other${serial}@example.org`)
    await join(api, bob.token, room)
    await setMails()
    await say('for another')
    await noticed()
    ahead += 11 * MINUTE
    await mailed()
    email = addressed
    expect(former()).toEqual([])
  })
})

describe('the link in a mail', () => {
  async function link(): Promise<string> {
    await setMails()
    await say('one')
    await noticed()
    ahead += 11 * MINUTE
    const [mail = ''] = await mailed()
    return server.baseUrl + new URL(linkIn(mail)).pathname + new URL(linkIn(mail)).search
  }
  const pushers = async () => (await api.call('GET', '/pushers', { token: bob.token })).pushers

  it('leads to a page with a button that ends the mails', async () => {
    const url = await link()
    const page = await fetch(url)
    expect([page.status, page.headers.get('cache-control')]).toEqual([200, 'no-store'])
    const html = await page.text()
    expect(html).toContain(email)
    expect(html).toContain('<form method="post">')
    await shoot(url, 'unsubscribe')
    // Mail scanners open links too.
    expect(await pushers()).toHaveLength(1)
    const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: '' }
    const done = await fetch(url, form)
    expect([done.status, (await done.text()).includes(email)]).toEqual([200, true])
    expect(await pushers()).toEqual([])
    const again = await fetch(url, form)
    expect(again.status).toBe(404)
    expect((await fetch(url)).status).toBe(404)
    await shoot(url, 'unsubscribe-unknown')
  })

  it('works at one click of a mail program', async () => {
    const url = await link()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const { status } = await fetch(url, { method: 'POST', headers, body: 'List-Unsubscribe=One-Click' })
    expect(status).toBe(200)
    expect(await pushers()).toEqual([])
  })

  it('cannot be made by others, nor for other pushers', async () => {
    const url = new URL(await link())
    const token = url.searchParams.get('token')!
    const [number, signature] = token.split('.')
    const forged = [`${Number(number) + 1}.${signature}`, `${number}.${signature!.slice(1)}A`, `0${token}x`, '', 'x.y']
    for (const text of forged) {
      url.searchParams.set('token', text)
      expect((await fetch(url, { method: 'POST', body: '' })).status).toBe(404)
    }
    expect(await pushers()).toHaveLength(1)
  })
})
