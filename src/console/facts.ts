/** What the server wrote into the page. */
export interface Facts {
  readonly token: string
  readonly user_id: string
  readonly server_name: string
  readonly version: string
  readonly has_password: boolean
}

const written = document.querySelector('meta[name=hearth]')
export const facts = JSON.parse(written?.getAttribute('content') ?? '{}') as Facts
// Whoever looks over a shoulder into the developer tools, or saves the page, finds no token there.
written?.remove()
