import { choice, integer, section } from './parts.ts'

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
  remove_devices_after_days: integer(
    'Devices that were not seen on so many days on which the server ran are removed, with their logins, keys and waiting messages; 0: none. Those of bridges stay. What only such a device could decrypt is lost to its user, unless they have a backup of keys. The server notes these days from the first start of a release that has this option, so nothing is removed before as many have passed.',
    0,
    0,
    36_500,
  ),
  new_login_letters: choice(
    'Whether people are told when somebody logs in to their account on a new device, or from an address where they have not been, at most four times an hour. `mail`: those with an email address, where `identity.mail.smtp.host` is set. `mail_or_notice`: the others too, by a server notice, where `server_notices.localpart` is set. `nobody`: none. Logins by application services and administrators are not told.',
    ['mail', 'mail_or_notice', 'nobody'],
    'mail',
  ),
})
