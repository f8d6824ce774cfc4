import { integer, section } from './parts.ts'

export const userSessionsSection = section('How long a login lasts.', {
  access_token_minutes: integer(
    'Lifetime of an access token whose client can renew it. After that a stolen token is worthless.',
    5,
    1,
    525_600,
  ),
  token_lifetime_hours: integer(
    'Lifetime of an access token whose client cannot renew it. After that, people must log in again on that device; 0: it does not expire.',
    0,
    0,
    87_600,
  ),
})
