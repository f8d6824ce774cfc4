import { count } from '../format.ts'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Card, Facts, Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { to } from '../router.ts'
import { useData } from '../use-data.ts'
import { type Text, t } from '../words.ts'

interface Bridge {
  readonly id: string
  readonly url: string | null
  readonly sender: string
  readonly is_hosted: boolean
  readonly rate_limited: boolean
  readonly protocols: readonly string[]
  readonly namespaces: Readonly<Record<string, readonly { readonly regex: string; readonly exclusive: boolean }[]>>
  readonly failures?: number
  readonly retry_at?: number
  readonly is_sending?: boolean
  readonly events_since?: number
}

const NAMESPACES: Readonly<Record<string, Text>> = {
  users: 'Its users',
  rooms: 'Its rooms',
  aliases: 'Its aliases',
}

export function Bridges() {
  const bridges = useData<{ appservices: Bridge[] }>('/_hearth/admin/v1/appservices')
  return (
    <Page
      title={t('Bridges')}
      words={t(
        'Application services: bridges to other networks, and bots. Their registration files are read again when they change.',
      )}
      actions={
        <button type="button" class="quiet" onClick={bridges.reload}>
          {t('Look again')}
        </button>
      }
    >
      <Shown of={bridges}>
        {({ appservices }) =>
          appservices.length === 0 ? (
            <p class="empty">
              {t('None is registered. The option application_services.registrations names their files.')}
            </p>
          ) : (
            appservices.map((bridge) => <BridgeCard key={bridge.id} bridge={bridge} />)
          )
        }
      </Shown>
    </Page>
  )
}

function BridgeCard({ bridge }: { readonly bridge: Bridge }) {
  const { id, url, sender, is_hosted, rate_limited, protocols, namespaces } = bridge
  return (
    <Card title={id} actions={<Condition bridge={bridge} />}>
      <Facts
        list={[
          [t('Address'), is_hosted ? t('runs in this server') : (url ?? t('receives nothing'))],
          [t('Its own user'), <a href={to(['users', sender])}>{sender}</a>],
          [t('Protocols'), protocols.length === 0 ? t('none') : protocols.join(', ')],
          [t('Rate limits'), rate_limited ? t('apply') : t('do not apply')],
          [t('Events since its last'), bridge.events_since === undefined ? undefined : count(bridge.events_since)],
          ...(bridge.failures ? [[t('Next try'), <Moment at={bridge.retry_at} />] as const] : []),
          ...Object.entries(namespaces)
            .filter(([, all]) => all.length > 0)
            .map(
              ([kind, all]) =>
                [
                  t(NAMESPACES[kind] ?? 'Its users'),
                  all.map(({ regex, exclusive }) => (
                    <span key={regex} class="block">
                      <code>{regex}</code> {exclusive && <span class="soft">{t('for itself')}</span>}
                    </span>
                  )),
                ] as const,
            ),
        ]}
      />
    </Card>
  )
}

function Condition({ bridge: { failures = 0, is_sending, url, is_hosted } }: { readonly bridge: Bridge }) {
  if (failures > 0)
    return (
      <Badge tone="bad">
        {failures === 1
          ? t('did not take the last delivery')
          : t('did not take the last {count} tries', { count: count(failures) })}
      </Badge>
    )
  if (url === null && !is_hosted) return <Badge>{t('receives nothing')}</Badge>
  return is_sending ? (
    <Badge tone="warn">{t('is being sent something')}</Badge>
  ) : (
    <Badge tone="good">{t('takes what it is sent')}</Badge>
  )
}
