import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_PICTURE_BYTES } from '../../src/domain/limits/oauth.ts'
import { fileInForm } from '../../src/http/multipart.ts'
import type { Browsing, Page } from '../support/browsing.ts'
import { type OauthWorld, openOauthWorld } from './world.ts'

let world: OauthWorld

async function draw(width: number, height: number): Promise<Uint8Array<ArrayBuffer>> {
  const image = sharp({ create: { width, height, channels: 3, background: { r: 200, g: 40, b: 40 } } })
  return new Uint8Array(await image.png().toBuffer())
}

beforeAll(async () => {
  world = await openOauthWorld({}, 'whole')
  await world.account('alice')
})
afterAll(() => world.close())

const cookieOf = ({ jar }: Browsing) => [...jar].map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
const unescaped = (text: string) => text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
const actionOf = ({ text }: Page) => unescaped(/enctype="multipart\/form-data" action="([^"]*)"/.exec(text)?.[1] ?? '')

async function signedIn(): Promise<{ browser: Browsing; page: Page }> {
  const browser = world.browser()
  return { browser, page: await browser.signIn(await browser.open('/_hearth/account'), 'alice') }
}

async function send(browser: Browsing, action: string, file: Uint8Array<ArrayBuffer> | string, name = 'x.png') {
  const body = new FormData()
  body.append('picture', new File([file], name, { type: 'image/png' }))
  const headers = { cookie: cookieOf(browser) }
  return fetch(new URL(action, world.origin), { method: 'POST', headers, body, redirect: 'manual' })
}
const picture = async () =>
  (await world.api.request('GET', `/profile/${encodeURIComponent('@alice:localhost')}/avatar_url`)).body.avatar_url

describe('the picture of a person', () => {
  it('is uploaded, shown and removed on the account page', async () => {
    const { browser, page } = await signedIn()
    expect(page.headers.get('content-security-policy')).toContain("img-src 'self'")
    expect(page.text).not.toContain('<img')
    const answer = await send(browser, actionOf(page), await draw(300, 200))
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/_hearth/account?done=picture_changed'])
    expect(await picture()).toMatch(/^mxc:\/\/localhost\//)
    const after = await browser.open('/_hearth/account?done=picture_changed')
    expect(after.text).toContain('Others see your new picture.')
    const address = unescaped(/<img src="([^"]*)"/.exec(after.text)?.[1] ?? '')
    const shown = await fetch(new URL(address, world.origin), { headers: { cookie: cookieOf(browser) } })
    expect([shown.status, shown.headers.get('content-type')]).toEqual([200, 'image/jpeg'])
    expect(shown.headers.get('content-security-policy')).toContain('sandbox')
    // Nobody else sees it by this address.
    expect((await fetch(new URL(address, world.origin))).status).toBe(404)
    const action = /action="([^"]*picture&#47;remove|[^"]*picture\/remove)"/.exec(after.text)?.[1] ?? ''
    const form =
      /picture(?:&#47;|\/)remove">\s*<input type="hidden" name="form" value="([^"]*)"/.exec(after.text)?.[1] ?? ''
    const removed = await browser.open(unescaped(action), { form: unescaped(form) })
    expect(removed.text).toContain('Your picture was removed.')
    expect(await picture()).toBeUndefined()
  })

  it.each([
    ['no picture', '<svg xmlns="http://www.w3.org/2000/svg"/>', 400],
    ['nothing', '', 400],
    ['too large', 'large', 413],
  ])('that is %s is refused in words', async (_what, text, status) => {
    const { browser, page } = await signedIn()
    const head = await draw(10, 10)
    const large = new Uint8Array(MAX_PICTURE_BYTES + 1)
    large.set(head)
    const answer = await send(browser, actionOf(page), text === 'large' ? large : text)
    expect(answer.status).toBe(status)
    const shown = await answer.text()
    expect(shown).toContain('role="alert"')
    expect(await picture()).toBeUndefined()
  })

  it('is taken from the page of this browser alone', async () => {
    const { browser, page } = await signedIn()
    const other = await signedIn()
    expect((await send(browser, actionOf(other.page), await draw(10, 10))).status).toBe(403)
    expect((await send(browser, '/_hearth/account/picture', await draw(10, 10))).status).toBe(403)
    const asForm = await fetch(new URL(actionOf(page), world.origin), {
      method: 'POST',
      headers: { cookie: cookieOf(browser) },
      body: new URLSearchParams({ picture: 'x' }),
    })
    expect(asForm.status).toBe(400)
    expect(await picture()).toBeUndefined()
  })
})

describe('the file in a form', () => {
  const read = async (text: string, size: number) => {
    async function* source() {
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
    }
    const pieces: Buffer[] = []
    for await (const piece of fileInForm(source(), 'B')) pieces.push(piece)
    return Buffer.concat(pieces).toString()
  }
  const head = '--B\r\nContent-Disposition: form-data; name="p"; filename="x"\r\n\r\n'

  it.each([1, 2, 3, 7, 1_000])('is the same in pieces of %i bytes', async (size) => {
    for (const content of ['', 'x', '\r\n', '\r\n--', 'a\r\n--A\r\n\r\n--b', 'long'.repeat(100)]) {
      expect(await read(`${head}${content}\r\n--B--\r\n`, size)).toBe(content)
      expect(await read(`${head}${content}\r\n--B\r\nmore: x\r\n\r\ny\r\n--B--\r\n`, size)).toBe(content)
    }
  })

  it.each(['', 'x', '--B\r\n', head, `${head}cut`, `--A\r\n\r\nx\r\n--A--`, 'x'.repeat(20_000)])(
    'is not found in %j',
    async (text) => {
      await expect(read(text, 5)).rejects.toMatchObject({ errcode: 'M_INVALID_PARAM' })
    },
  )
})
