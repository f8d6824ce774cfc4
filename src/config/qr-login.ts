import { choice, section } from './parts.ts'

export const qrLoginSection = section('Signing in on a new device by a QR code that a signed-in one shows or reads.', {
  rendezvous: choice(
    'Who may begin a session through which the two devices meet: `anyone`, `users` (those who are signed in; a new device cannot show the code then, and older clients cannot use it at all) or `nobody`. Sessions are small, short and few, and only in memory.',
    ['anyone', 'users', 'nobody'],
    'anyone',
  ),
})
