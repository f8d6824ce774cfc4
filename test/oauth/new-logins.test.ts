import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insertUserThreepid } from '../../src/store/accounts/user-threepids.ts'
import { findUserNids } from '../../src/store/accounts/users.ts'
import { type Account, type Json, PASSWORD } from '../support/api.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'
import { waitUntil } from '../support/wait.ts'
import { type OauthWorld, openOauthWorld, session } from './world.ts'

/** Letters about logins on new devices. */

const HOUR = 3_600_000
const PAUSE = 15 * 60_000

let smtp: SmtpSink
let world: OauthWorld
let refusal: Error | null = null

beforeAll(async () => {
  smtp = await startSmtp({}, () => refusal)
  world = await openWorld()
})
afterAll(async () => {
  await world.close()
  await smtp.close()
})

function openWorld(values: object = {}): Promise<OauthWorld> {
  const mail = { from: 'hearth@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' } }
  return openOauthWorld(
    { identity: { mail }, trusted_proxies: ['127.0.0.1'], registration: { enabled: true }, ...values },
    'whole',
  )
}

/** Somebody with an account, on one device, and an address of it. */
async function person(name: string, where = world): Promise<Account> {
  const account = await where.account(name)
  const nid = (await findUserNids(where.db, [account.userId as never])).get(account.userId as never)!
  const row = { medium: 'email', address: `${name}@example.org`, validated_at: 1, added_at: 1 } as const
  await where.db.tx((tx) => insertUserThreepid(tx, nid, row, 10))
  return account
}

async function login(
  name: string,
  device: string,
  { where = world, language = 'en', ip = undefined as string | undefined } = {},
): Promise<Json> {
  const body = {
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: name },
    password: PASSWORD,
    device_id: device,
    initial_device_display_name: `The <b>${device}</b>`,
  }
  const from = ip === undefined ? {} : { 'x-forwarded-for': ip }
  const headers = { 'content-type': 'application/json', 'accept-language': language, ...from }
  const answer = await fetch(`${where.baseUrl}/_matrix/client/v3/login`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  expect(answer.status).toBe(200)
  return answer.json()
}

const lettersTo = (name: string) => smtp.mails.filter(({ to }) => to[0] === `${name}@example.org`)
const untilLetters = (name: string, count: number): Promise<string[]> =>
  waitUntil(`${count} letters to ${name}`, () => {
    const all = lettersTo(name)
    return all.length >= count && all.map(({ raw }) => decodeQuotedPrintable(raw))
  })

/** Has a letter of somebody else come: what was noted before has been looked at then. */
async function afterAnother(): Promise<void> {
  others += 1
  const name = `other${others}`
  await person(name)
  await login(name, 'LATERPHONE')
  await untilLetters(name, 1)
}
let others = 0

describe('a login on a new device', () => {
  it('is told by mail, with what leads to the account page', async () => {
    await person('anna')
    await login('anna', 'ANNASPHONE')
    const [letter] = await untilLetters('anna', 1)
    expect(letter).toContain('Subject: A new login at localhost')
    expect(letter).toContain('The <b>ANNASPHONE</b> (device ANNASPHONE)')
    expect(letter).toContain('<strong>The &#60;b&#62;ANNASPHONE&#60;/b&#62;</strong>')
    expect(letter).toContain('from 127.0.0.1')
    expect(letter).toContain(`${world.origin}/_hearth/account`)
  })

  it('is told in German to those who speak it, also when an app signs in by OAuth', async () => {
    await person('berta')
    await login('berta', 'BERTASPHONE', { language: 'de-AT' })
    const [letter] = await untilLetters('berta', 1)
    expect(letter).toContain('Neue Anmeldung bei localhost')
    await person('carl')
    await session(world, await world.client(), 'carl', 'CARLSAPP01')
    const [other] = await untilLetters('carl', 1)
    expect(other).toContain('An app (device CARLSAPP01)')
  })

  it('is told once, and not again for the same device', async () => {
    await person('dora')
    await login('dora', 'DORASPHONE')
    await untilLetters('dora', 1)
    await login('dora', 'DORASPHONE')
    world.advance(PAUSE + 1_000)
    await afterAnother()
    expect(lettersTo('dora')).toHaveLength(1)
  })

  it('waits a while after a letter: then one letter is about all of them', async () => {
    await person('emil')
    await login('emil', 'EMILSPHONE')
    await untilLetters('emil', 1)
    for (let n = 0; n < 12; n++) await login('emil', `EMILSBOT${n}`)
    await afterAnother()
    expect(lettersTo('emil')).toHaveLength(1)
    world.advance(PAUSE + 1_000)
    await afterAnother()
    const [, letter] = await untilLetters('emil', 2)
    expect(letter).toContain('EMILSBOT0')
    expect(letter).toContain('EMILSBOT9')
    expect(letter).not.toContain('EMILSBOT10')
    expect(letter).toContain('and 2 more')
  })

  it('is told of a known device too, if it comes from where its owner has not been', async () => {
    await person('elsa')
    const { access_token: token } = await login('elsa', 'ELSASPHONE', { ip: '192.0.2.7' })
    await untilLetters('elsa', 1)
    const seen = await fetch(`${world.baseUrl}/_matrix/client/v3/account/whoami`, {
      headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': '192.0.2.7' },
    })
    expect(seen.status).toBe(200)
    await login('elsa', 'ELSASPHONE', { ip: '192.0.2.7' })
    // The letter before holds this one back, and does not stand for it.
    await login('elsa', 'ELSASPHONE', { ip: '198.51.100.9' })
    await afterAnother()
    expect(lettersTo('elsa')).toHaveLength(1)
    world.advance(PAUSE + 1_000)
    await afterAnother()
    const [, letter] = await untilLetters('elsa', 2)
    expect(letter).toContain('from 198.51.100.9')
    world.advance(PAUSE + 1_000)
    await afterAnother()
    expect(lettersTo('elsa')).toHaveLength(2)
  })

  it('is told at the addresses of that moment: who logged in cannot remove them first', async () => {
    await person('fanny')
    await login('fanny', 'FANNYSPHONE')
    await untilLetters('fanny', 1)
    const { access_token: token } = await login('fanny', 'THIEFSPHONE')
    const body = { medium: 'email', address: 'fanny@example.org' }
    await world.api.call('POST', '/account/3pid/delete', { token, body })
    world.advance(PAUSE + 1_000)
    await afterAnother()
    const [, letter] = await untilLetters('fanny', 2)
    expect(letter).toContain('THIEFSPHONE')
  })

  it('is not told of the first device of a new account', async () => {
    const { userId } = await world.account('frida')
    const nid = (await findUserNids(world.db, [userId as never])).get(userId as never)!
    const row = { medium: 'email', address: 'frida@example.org', validated_at: 1, added_at: 1 } as const
    await world.db.tx((tx) => insertUserThreepid(tx, nid, row, 10))
    const { devices } = await world.api.call('GET', '/devices', {
      token: (await login('frida', 'FRIDA1')).access_token,
    })
    expect(devices).toHaveLength(2)
    await untilLetters('frida', 1)
    await world.db.query('DELETE FROM new_login')
    const { access_token: token } = await login('frida', 'FRIDA1')
    await world.api.call('POST', '/logout/all', { token, body: {} })
    await login('frida', 'FRIDA2')
    world.advance(PAUSE + 1_000)
    await afterAnother()
    expect(lettersTo('frida')).toHaveLength(1)
  })

  it('is told later if the mail server takes no letter now, and not at all after a day', async () => {
    await person('gerda')
    await person('hans')
    refusal = Object.assign(new Error('not now'), { responseCode: 451 })
    await login('gerda', 'GERDAPHONE')
    const isFailed = async (device: string) => {
      const rows = await world.db.query('SELECT 1 AS one FROM new_login WHERE device_id = $1 AND failures > 0', [
        device,
      ])
      return rows.length === 1
    }
    await waitUntil('a failed letter', () => isFailed('GERDAPHONE'))
    refusal = null
    world.advance(5 * 60_000)
    await afterAnother()
    await untilLetters('gerda', 1)
    refusal = Object.assign(new Error('not now'), { responseCode: 451 })
    await login('hans', 'HANSPHONE')
    await waitUntil('another failed letter', () => isFailed('HANSPHONE'))
    world.advance(25 * HOUR)
    await login('hans', 'HANSPHONE2')
    await waitUntil('that the first one is given up', async () => {
      const rows = await world.db.query("SELECT 1 AS one FROM new_login WHERE device_id = 'HANSPHONE'")
      return rows.length === 0
    })
    refusal = null
  })

  it('is announced on the account page of who has an address', async () => {
    await person('ida')
    await world.account('jana')
    for (const [name, isAnnounced] of [
      ['ida', true],
      ['jana', false],
    ] as const) {
      const browser = world.browser()
      const page = await browser.signIn(await browser.open('/_hearth/account'), name)
      expect(page.heading).toBe('Your account')
      expect(page.text.includes('you get a mail about it')).toBe(isAnnounced)
    }
  })
})

it('is told by a notice of the server where there is no address and the operator wants that', async () => {
  const values = { server_notices: { localpart: 'notices' }, sessions: { new_login_letters: 'mail_or_notice' } }
  const where = await openWorld(values)
  try {
    const { token } = await where.account('karl')
    await login('karl', 'KARLSPHONE', { where, language: 'de' })
    const room = await waitUntil('an invitation', async () => {
      const { rooms } = await where.api.call('GET', '/sync?timeout=0', { token })
      return Object.keys(rooms?.invite ?? {})[0]
    })
    await where.api.call('POST', `/join/${encodeURIComponent(room)}`, { token, body: {} })
    const bodies = await waitUntil('the notice', async () => {
      const { chunk } = await where.api.call('GET', `/rooms/${encodeURIComponent(room)}/messages?dir=b`, { token })
      const found: string[] = chunk.map(({ content }: Json) => content.body).filter(Boolean)
      return found.length > 0 && found
    })
    expect(bodies).toHaveLength(1)
    expect(bodies[0]).toContain('auf einem neuen Gerät')
    expect(bodies[0]).toContain('KARLSPHONE')
  } finally {
    await where.close()
  }
})

it('nobody is told where the operator does not want it', async () => {
  const where = await openWorld({ sessions: { new_login_letters: 'nobody' } })
  try {
    await person('lena', where)
    await login('lena', 'LENASPHONE', { where })
    expect(await where.db.query('SELECT 1 AS one FROM new_login')).toEqual([])
  } finally {
    await where.close()
  }
})
