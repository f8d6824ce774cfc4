import type { ServerResponse } from 'node:http'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, openApi, register } from '../support/api.ts'
import { type Authority, createAuthority } from '../support/certificate.ts'
import { fetchFile } from '../support/media.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { cpuMsOf } from '../support/slowness.ts'
import { startTlsServer, type TlsServer } from '../support/tls-server.ts'

let authority: Authority
let web: TlsServer
let server: TestServer
let api: Api
let alice: Account
let pages: Map<string, (response: ServerResponse) => void>

beforeAll(async () => {
  authority = createAuthority()
  pages = new Map()
  web = await startTlsServer(authority.issue(['localhost']), ({ url }, response) => {
    const page = pages.get(url)
    if (page === undefined) response.writeHead(404).end()
    else page(response)
  })
  server = await startServer({
    outbound: { ca_file: authority.file },
    media: { url_previews: { enabled: true, blocked_hosts: ['*.blocked.test', '127.0.0.1'] } },
  })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})
afterAll(async () => {
  await api.close()
  await server.close()
  await web.close()
  authority.remove()
})

let count = 0
const html =
  (body: string | Buffer, type = 'text/html; charset=utf-8') =>
  (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': type }).end(body)
  }
function put(page: (response: ServerResponse) => void, path = `/page${++count}`): string {
  pages.set(path, page)
  return `https://localhost:${web.port}${path}`
}
const ask = (url: string, root = '/_matrix/client/v1/media') =>
  api.request('GET', `${root}/preview_url?url=${encodeURIComponent(url)}&ts=1`, { token: alice.token })
const preview = async (url: string) => (await ask(url)).body

describe('a preview', () => {
  test('says what a page says of itself, with its picture as a file of this server', async () => {
    const image = await sharp({ create: { width: 48, height: 24, channels: 3, background: 'teal' } })
      .png()
      .toBuffer()
    put(html(image, 'image/png'), '/pictures/1')
    const url = put(
      html(`<html><head><title>Not this</title>
      <meta property="og:title" content="A &amp; B"><meta property="og:site_name" content=" Site ">
      <meta property="og:image" content="../pictures/1"><meta name="description" content="About  it"></head></html>`),
      '/deep/page',
    )
    const shown = await preview(url)
    expect(shown).toMatchObject({
      ...{ 'og:title': 'A & B', 'og:site_name': 'Site', 'og:description': 'About it', 'og:image:type': 'image/png' },
      ...{ 'og:image:width': 48, 'og:image:height': 24, 'matrix:image:size': image.length },
    })
    const name = shown['og:image'].slice('mxc://'.length)
    const file = await fetchFile(`${server.baseUrl}/_matrix/client/v1/media/download/${name}`, { token: alice.token })
    expect(file.bytes.equals(image)).toBe(true)
  })

  test('of a page that says nothing is its title and its first words', async () => {
    const url = put(html('<title> The\n title</title><script>no()</script><p>First <b>words</b></p><nav>menu</nav>'))
    expect(await preview(url)).toEqual({ 'og:title': 'The title', 'og:description': 'First words' })
  })

  test('reads the letters that a page is written in', async () => {
    const latin = put(html(Buffer.from('<title>caf\xe9</title>', 'latin1'), 'text/html; charset=iso-8859-1'))
    expect(await preview(latin)).toEqual({ 'og:title': 'café' })
    const declared = put(
      html(Buffer.from('<meta charset="windows-1252"><title>caf\xe9</title>', 'latin1'), 'text/html'),
    )
    expect(await preview(declared)).toEqual({ 'og:title': 'café' })
  })

  test('is looked for once, however many ask, and by the old endpoints too', async () => {
    web.requests.length = 0
    const url = put(html('<title>once</title>'))
    await Promise.all(Array.from({ length: 10 }, () => preview(url)))
    expect((await ask(url, '/_matrix/media/r0')).body).toEqual({ 'og:title': 'once' })
    expect((await ask(`${url}#part`, '/_proto/media/v3')).body).toEqual({ 'og:title': 'once' })
    expect(web.requests).toHaveLength(1)
  })

  test.each<[string, (response: ServerResponse) => void]>([
    ['that is not there', (response) => response.writeHead(404).end('<title>x</title>')],
    ['that is no page', html('%PDF', 'application/pdf')],
    [
      'that leads to a private address (81)',
      (response) => response.writeHead(302, { location: 'https://10.0.0.1/' }).end(),
    ],
    [
      'that leads to a blocked host (82)',
      (response) => response.writeHead(302, { location: 'https://127.0.0.1:1/' }).end(),
    ],
    ['that leads in circles', (response) => response.writeHead(302, { location: '/circle' }).end()],
  ])('of a page %s is empty', async (_what, page) => {
    pages.set('/circle', (response) => response.writeHead(302, { location: '/circle' }).end())
    expect(await ask(put(page))).toEqual({ status: 200, body: {} })
  })

  test.each([
    ['at a private address', 'https://10.1.2.3/x.png'],
    ['at a blocked host (82)', 'https://127.0.0.1/x.png'],
    ['in a file', 'file:///etc/passwd'],
    ['in the page itself', 'data:image/png;base64,AAAA'],
  ])('shows no picture %s', async (_what, image) => {
    expect(await preview(put(html(`<title>t</title><meta property="og:image" content="${image}">`)))).toEqual({
      'og:title': 't',
    })
  })

  test('shows no picture that is none, whatever it says (85)', async () => {
    put(html('<svg onload="alert(1)"/>', 'image/png'), '/lie.png')
    expect(await preview(put(html('<title>t</title><meta property="og:image" content="/lie.png">')))).toEqual({
      'og:title': 't',
    })
  })

  test('of an endless page is what stands at its beginning (69), and one nested without end costs nothing (68)', async () => {
    const endless = put((response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).write('<title>endless</title>')
      const timer = setInterval(() => response.write('<div>'.repeat(50_000)), 5)
      response.on('close', () => clearInterval(timer))
    })
    const nested = put(html(`<title>nested</title>${'<div><svg><nav>'.repeat(30_000)}`), '/nested')
    const many = Array.from(
      { length: 5_000 },
      (_, index) => `<meta property="og:x_${'y'.repeat(index % 40)}" content="${'z'.repeat(99)}">`,
    )
    const took = await cpuMsOf(async () => {
      expect(await preview(endless)).toEqual({ 'og:title': 'endless' })
      expect(await preview(nested)).toEqual({ 'og:title': 'nested' })
      expect(JSON.stringify(await preview(put(html(many.join(''))))).length).toBeLessThan(10_000)
    })
    expect(took).toBeLessThan(8_000)
  })
})

test.each([
  ['M_INVALID_PARAM', 'file:///etc/passwd'],
  ['M_INVALID_PARAM', 'javascript:alert(1)'],
  ['M_INVALID_PARAM', 'no address'],
  ['M_FORBIDDEN', 'https://user:password@localhost/'],
  ['M_FORBIDDEN', 'https://www.BLOCKED.test/'],
])('%s is said of %s', async (errcode, url) => {
  expect((await ask(url)).body.errcode).toBe(errcode)
})

test('nothing is fetched unless the operator wants it, and only from where they want it', async () => {
  const url = put(html('<title>x</title>'))
  web.requests.length = 0
  await server.restart({ media: { url_previews: { enabled: true, allowed_hosts: ['*.example.org'] } } })
  expect((await ask(url)).body.errcode).toBe('M_FORBIDDEN')
  await server.restart({ media: { url_previews: { enabled: false } } })
  expect((await ask(url)).body.errcode).toBe('M_FORBIDDEN')
  expect(web.requests).toEqual([])
})
