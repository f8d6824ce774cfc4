import { flag, section } from './parts.ts'

export const oauthSection = section(
  'Signing in by OAuth 2.0, as newer clients do: in the browser, on the pages of this server. It needs `public_base_url`, with https.',
  {
    enabled: flag(
      'Whether clients can sign in by OAuth. Clients that know it prefer it; all others log in as before.',
      true,
    ),
    legacy_login: flag(
      'Whether clients can also log in and register by the older interface, with a password that they ask for themselves. Without it older clients cannot be used, and application services log in as before.',
      true,
    ),
  },
)
