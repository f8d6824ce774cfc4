import { PASSWORD } from './api.ts'

export interface Page {
  readonly status: number
  /** Where it is, after redirects within the server. */
  readonly url: URL
  readonly text: string
  readonly headers: Headers
  /** Where it leads outside of the server. */
  readonly left: URL | undefined
  readonly heading: string
}

/** A browser without scripts: it keeps cookies, follows redirects and sends forms. */
export class Browsing {
  readonly jar = new Map<string, { value: string; path: string }>()
  readonly #origin: string

  constructor(origin: string) {
    this.#origin = origin
  }

  #cookiesFor(url: URL): string {
    const fitting = [...this.jar].filter(([, { path }]) => url.pathname === path || url.pathname.startsWith(path))
    return fitting.map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
  }

  #keep(answer: Response): void {
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      const path = /; *path=([^;]+)/i.exec(line)?.[1] ?? '/'
      const isOver = /expires=Thu, 01 Jan 1970|max-age=0/i.test(line)
      if (isOver) this.jar.delete(`${name} ${path}`)
      else this.jar.set(`${name} ${path}`, { value, path })
    }
  }

  async open(
    address: string | URL,
    form?: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Page> {
    let url = new URL(address, this.#origin)
    let body = form === undefined ? undefined : new URLSearchParams(form)
    for (let step = 0; step < 10; step += 1) {
      const cookie = this.#cookiesFor(url)
      const answer = await fetch(url, {
        redirect: 'manual',
        headers: { ...headers, cookie, accept: 'text/html,application/xhtml+xml' },
        ...(body && { method: 'POST', body }),
      })
      this.#keep(answer)
      const location = answer.headers.get('location')
      const text = await answer.text()
      const next = location === null ? undefined : new URL(location, url)
      if (next === undefined || next.origin !== this.#origin) {
        const heading = /<h1>([^<]*)/.exec(text)?.[1] ?? ''
        return { status: answer.status, url, text, headers: answer.headers, left: next, heading }
      }
      body = undefined
      url = next
    }
    throw new Error(`no end of redirects at ${url}`)
  }

  /** Sends the form of a page: its hidden fields, and these. */
  submit(page: Page, fields: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Page> {
    const action = /<form method="post"(?: action="([^"]*)")?/.exec(page.text)?.[1] ?? ''
    return this.open(new URL(unescaped(action), page.url), { ...hiddenOf(page), ...fields }, headers)
  }

  /** Signs in on the page that asks for it. */
  signIn(page: Page, username: string, password = PASSWORD): Promise<Page> {
    return this.submit(page, { username, password })
  }
}

const unescaped = (text: string) => text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))

export function hiddenOf({ text }: Pick<Page, 'text'>): Record<string, string> {
  const first = /<form[\s\S]*?<\/form>/.exec(text)?.[0] ?? ''
  const inputs = [...first.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  return Object.fromEntries(inputs.map(([, name, value]) => [name, unescaped(value ?? '')]))
}

/** Where a page leads outside of the server: by itself, or by a button, as back to an app. */
export function leadsTo(page: Page): string {
  const [, link = ''] = /<a class="button" href="([^"]*)"/.exec(page.text) ?? []
  return page.left?.href ?? unescaped(link)
}
