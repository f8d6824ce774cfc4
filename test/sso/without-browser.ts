/** Goes through the provider's forms without a browser, and gives where it leads back to. */
export async function passProvider(at: URL, login: string): Promise<URL> {
  const jar = new Map<string, string>()
  let url = at
  let body: URLSearchParams | undefined
  for (let step = 0; step < 8; step += 1) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie }, ...(body && { method: 'POST', body }) })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      jar.set(name, value)
    }
    const location = answer.headers.get('location')
    if (location === null) {
      body = new URLSearchParams({ prompt: 'login', login, password: 'any' })
      continue
    }
    body = undefined
    url = new URL(location, url)
    if (url.pathname === '/_hearth/sso/callback') return url
  }
  throw new Error('the provider did not lead back')
}
