import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { messageOptions } from '../../contact/contact-people.ts'
import { openOauthWorld } from '../../oauth/world.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../../support/browser.ts'
import { startGateway } from '../../support/sms-gateway.ts'
import { startSmtp } from '../../support/smtp.ts'
import { type House, walkIntoAccount, walkOutOfAccount, walkThroughAccount, walkWithApps } from './account-walk.ts'
import { walkThroughMails, walkToIdentityService, walkWrongLinks } from './link-walk.ts'
import { walkThroughPortal, walkWithoutRoom, walkWithProviders } from './sso-walk.ts'
import { openStrictHouse, type StrictHouse, walkThroughProofs, walkThroughStages } from './stage-walk.ts'
import { type Album, beginTour, LANGUAGES, openAlbum, type Tour } from './tour.ts'

/**
 * Every page that people see outside of the console, and every mail: in each language, light and dark, on a screen and on a phone. Each has
 * to fit, to be usable for all as far as axe can tell, and to show where the focus is. `PICTURES` names a folder for pictures of them.
 */
describe.skipIf(chromiumPath() === undefined)('all pages, looked at', () => {
  let browser: TestBrowser
  let house: House
  let strict: StrictHouse
  const album: Album = openAlbum()

  beforeAll(async () => {
    browser = await openBrowser()
    const [smtp, gateway] = [await startSmtp({ hideSTARTTLS: true }, () => null), await startGateway()]
    const identity = messageOptions(smtp, gateway)
    const registration = { enabled: true, email: 'optional', msisdn: 'optional' }
    const world = await openOauthWorld({ registration, identity }, 'whole')
    house = { world, smtp, gateway }
    strict = await openStrictHouse(identity)
    for (const { services } of [world, strict.world]) album.watch(services)
    await prepare(house)
  })
  afterAll(async () => {
    await browser.close()
    await strict.close()
    await house.world.close()
    await house.smtp.close()
    await house.gateway.close()
  })

  describe.each(LANGUAGES)('in %s', (language) => {
    const walk = (name: string, go: (tour: Tour) => Promise<void>) =>
      it(name, async () => {
        const tour = await beginTour(browser, album, language)
        await go(tour)
        await tour.close()
      })
    const name = `ada.${language}`

    walk('an account, from its beginning to its end', async (tour) => {
      await walkIntoAccount(house, tour, name)
      await walkThroughAccount(house, tour, name)
      await walkWithApps(house, tour, name)
      await walkOutOfAccount(house, tour, name)
    })
    walk('the stages of a registration', (tour) => walkThroughStages(strict, house, tour))
    walk('the stages for who has an account', (tour) => walkThroughProofs(house.world, tour, `bea.${language}`))
    walk('mails, and the pages that their links lead to', async (tour) => {
      await walkThroughMails(house, tour, `cleo.${language}`)
      await walkWrongLinks(house, tour)
    })
    walk('other services to sign in by', async (tour) => {
      await walkWithProviders(album, tour)
      await walkWithoutRoom(album, tour)
      await walkThroughPortal(album, tour)
    })
    walk('an identity service alone', (tour) => walkToIdentityService(album, tour))
  })

  it('no page was left out', () => {
    expect(album.unseen()).toEqual([])
  })
})

/** Accounts that people run into: one whose name is taken, one that is locked, and one that has ended. */
async function prepare({ world }: House): Promise<void> {
  for (const name of ['taken', 'locked', 'gone']) await world.account(name)
  await world.db.tx(async (tx) => {
    const of = 'FROM matrix_user u WHERE u.user_nid = account.user_nid AND u.user_id ='
    await tx.query(`UPDATE account SET is_locked = true ${of} '@locked:localhost'`)
    await tx.query(`UPDATE account SET deactivated_at = 1, password_hash = NULL ${of} '@gone:localhost'`)
    await tx.query(
      `INSERT INTO user_threepid (user_nid, medium, address, validated_at, added_at)
       SELECT user_nid, 'email', 'taken@example.org', 1, 1 FROM matrix_user WHERE user_id = '@taken:localhost'`,
    )
  })
}
