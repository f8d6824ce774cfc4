import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { messageOptions } from '../contact/contact-people.ts'
import { PASSWORD } from '../support/api.ts'
import { type Browsing, hiddenOf } from '../support/browsing.ts'
import { type FakeGateway, startGateway } from '../support/sms-gateway.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'
import { type OauthWorld, openOauthWorld, session, whoami } from './world.ts'

let world: OauthWorld
let smtp: SmtpSink
let gateway: FakeGateway

beforeAll(async () => {
  smtp = await startSmtp({ hideSTARTTLS: true }, () => null)
  gateway = await startGateway()
  world = await openOauthWorld({ identity: messageOptions(smtp, gateway) })
})
afterAll(async () => {
  await world.close()
  await smtp.close()
  await gateway.close()
})

/** Opens the link of the newest mail in another browser, and confirms what it asks. */
async function followLink(): Promise<void> {
  const mail = decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? '')
  const url = new URL(/http:\/\/\S+submitToken\S+/.exec(mail)?.[0] ?? 'nothing:')
  const browser = world.browser()
  const page = await browser.open(url.pathname + url.search)
  if (page.text.includes('<form')) await browser.submit(page)
}

async function withEmail(name: string, email: string): Promise<Browsing> {
  await world.account(name)
  const browser = world.browser()
  const form = await browser.signIn(await browser.open('/_hearth/account/email'), name)
  expect(form.heading).toBe('Add an email address')
  const sent = await browser.submit(form, { email })
  expect(sent.heading).toBe('Confirm your email address')
  const early = await browser.submit(sent)
  expect(early.status).toBeGreaterThanOrEqual(400)
  expect(early.heading).toBe('Confirm your email address')
  await followLink()
  expect((await browser.submit(early)).text).toContain('The address belongs to your account now.')
  return browser
}

describe('an email address', () => {
  it('is added once its owner has opened the link, and removed again', async () => {
    const browser = await withEmail('anna', 'anna@example.org')
    const account = await browser.open('/_hearth/account')
    expect(account.text).toContain('anna@example.org')
    const question = await browser.open('/_hearth/account/address?address=anna%40example.org')
    expect(question.heading).toBe('Remove this address?')
    expect((await browser.submit(question)).text).toContain('The address was removed.')
    expect((await browser.open('/_hearth/account')).text).not.toContain('anna@example.org')
  })

  it('signs in, too', async () => {
    await withEmail('bert', 'bert@example.org')
    const browser = world.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account'), 'bert@example.org')
    expect(page.heading).toBe('Your account')
  })

  it('of another account is refused', async () => {
    await withEmail('carla', 'carla@example.org')
    await world.account('dirk')
    const browser = world.browser()
    const form = await browser.signIn(await browser.open('/_hearth/account/email'), 'dirk')
    const refused = await browser.submit(form, { email: 'carla@example.org' })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('class="problem"')
  })
})

describe('a forgotten password', () => {
  it('is replaced by who has the address: all sessions end', async () => {
    await withEmail('emma', 'emma@example.org')
    const app = await session(world, await world.client(), 'emma')
    const browser = world.browser()
    const asked = await browser.open('/_hearth/account/reset')
    expect(asked.heading).toBe('Confirm your email address')
    const sent = await browser.submit(asked, { email: 'emma@example.org' })
    await followLink()
    const form = await browser.submit(sent)
    expect(form.heading).toBe('Choose a new password')
    const unequal = await browser.submit(form, { password: 'a brand new password', repeated: 'another' })
    expect(unequal.text).toContain('The two passwords are not the same.')
    const fields = { password: 'a brand new password', repeated: 'a brand new password' }
    expect((await browser.submit(unequal, fields)).heading).toBe('Sign in')
    expect((await whoami(world, app.access_token)).status).toBe(401)
    const again = world.browser()
    const old = await again.signIn(await again.open('/_hearth/account'), 'emma', PASSWORD)
    expect(old.status).toBe(403)
    expect((await again.signIn(old, 'emma', 'a brand new password')).heading).toBe('Your account')
    // The proof was used up.
    expect((await browser.submit(form, fields)).heading).toBe('Confirm your email address')
  })

  it('is not replaced before the link was opened', async () => {
    await withEmail('fritz', 'fritz@example.org')
    const browser = world.browser()
    const sent = await browser.submit(await browser.open('/_hearth/account/reset'), { email: 'fritz@example.org' })
    const early = await browser.submit(sent, { password: 'a brand new password', repeated: 'a brand new password' })
    expect(early.status).toBeGreaterThanOrEqual(400)
    expect((await world.browser().open('/_hearth/account/sign-in')).heading).toBe('Sign in')
  })
})

describe('a phone number', () => {
  it('is added with the code that was sent to it', async () => {
    await world.account('phyllis')
    const browser = world.browser()
    const form = await browser.signIn(await browser.open('/_hearth/account/phone'), 'phyllis')
    expect(form.heading).toBe('Add a phone number')
    const local = await browser.submit(form, { number: '07400 123456' })
    expect([local.status, local.heading]).toEqual([400, 'Add a phone number'])
    const before = gateway.requests.length
    const sent = await browser.submit(form, { number: '+44 7400 123456' })
    expect([sent.status, sent.heading]).toEqual([200, 'Confirm your phone number'])
    const code = /\b(\d{6})\b/.exec(JSON.stringify(gateway.requests.slice(before)))?.[1] ?? ''
    const wrong = await browser.submit(sent, { token: code === '000000' ? '000001' : '000000' })
    expect([wrong.status >= 400, wrong.heading]).toEqual([true, 'Confirm your phone number'])
    const done = await browser.submit(wrong, { token: code })
    expect(done.text).toContain('The number belongs to your account now.')
    expect(done.text).toContain('447400123456')
    const removal = await browser.open('/_hearth/account/address?address=447400123456')
    expect((await browser.submit(removal)).text).toContain('The address was removed.')
  })

  it('belongs to one account, and its code to one browser', async () => {
    await world.account('quentin')
    await world.account('rita')
    const [first, second] = [world.browser(), world.browser()]
    const sent = await first.submit(await first.signIn(await first.open('/_hearth/account/phone'), 'quentin'), {
      number: '+44 7400 654321',
    })
    const code = /\b(\d{6})\b/.exec(JSON.stringify(gateway.requests.at(-1)))?.[1] ?? ''
    const other = await second.signIn(await second.open('/_hearth/account/phone'), 'rita')
    const stolen = await second.open(other.url, { ...hiddenOf(other), sid: hiddenOf(sent).sid ?? '', token: code })
    expect(stolen.status).toBeGreaterThanOrEqual(400)
    expect((await first.submit(sent, { token: code })).text).toContain('The number belongs to your account now.')
    const taken = await second.submit(other, { number: '+44 7400 654321' })
    expect([taken.status, taken.heading]).toEqual([400, 'Add a phone number'])
  })

  it('is not offered where no text messages can be sent', async () => {
    const plain = await openOauthWorld()
    await plain.account('sam')
    const browser = plain.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account/phone'), 'sam')
    expect(page.heading).toBe('Your account')
    expect(page.text).not.toContain('phone number')
    await plain.close()
  })
})
