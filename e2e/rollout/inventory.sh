# The inventories of the rollout test, written from the guests that there are; to be sourced.

# inventory FILE AGENT...: five nodes in three racks or what is left of them, and one machine for all else. An agent is
# NAME:NUMBER:RACK, or NAME:NUMBER:RACK:STORE where its blocks go to a disk, memcached or redis. $gateway is NAME:NUMBER of the machine
# of the gateway, $second that of another gateway's, $members the names of agents whose machines have a member of etcd, and
# $inventory_more further settings of all.
inventory() {
  local file=$1 agent name number rack store more
  shift
  {
    cat <<END
all:
  vars:
    ansible_user: root
    ansible_ssh_private_key_file: $work/key
    ansible_ssh_common_args: -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlPath=$work/%C
    ansible_python_interpreter: /usr/bin/python3
    program_packages: {agent: $packages/$version/restripe-agent.deb, restripe: $packages/$version/restripe.deb}
    program_version: $version
    pki_cluster: rollout
    pki_authority: $work/authority
    pki_program: $program
    gateway_users:
      - name: tester
        accessKey: {id: TESTER, secret: $secret}
        verbs: [get, plan, apply, approve, pause]
        objects: [{may: [admin]}]
      - {name: prometheus, tokenSHA256: $(printf %s "$secret" | sha256sum | cut -d ' ' -f 1), verbs: [metrics]}
    console_listen: "{{ ansible_host }}:7482"
    operator_metrics_listen: "{{ ansible_host }}:7483"
    gateway_classes:
      - {name: files, prefixes: [""], ladder: "rep(3),rs(2,2)"}
    policies_backend: rollout
    policies_files: [$here/policies.yaml]
    whole_minutes: 15
${inventory_more:-}
  children:
    restripe:
      children:
        restripe_agents:
          hosts:
END
    for agent in "$@"; do
      IFS=: read -r name number rack store <<<"$agent"
      case $store in
      disk) more=", agent_nodes: [{disk: restripe-$name}]" ;;
      memcached) more=', store_servers: [memcached], agent_nodes: [{store: "memcached://127.0.0.1:11211"}]' ;;
      redis) more=", store_servers: [redis], store_redis_password: $secret, agent_nodes: [{store: \"redis://:$secret@127.0.0.1:6379\"}]" ;;
      *) more= ;;
      esac
      echo "            $name: {ansible_host: $guests_subnet.$number, agent_domain: $rack$more}"
    done
    cat <<END
        restripe_gateways:
          hosts:
            ${gateway%:*}: {ansible_host: $guests_subnet.${gateway#*:}}
            ${second:+${second%:*}: {ansible_host: $guests_subnet.${second#*:}\}}
        restripe_operators:
          hosts:
            ${gateway%:*}:
        restripe_consoles:
          hosts:
            ${gateway%:*}:
END
    [ -z "${members:-}" ] || printf '        restripe_etcd:\n          hosts:\n'
    for name in ${members:-}; do echo "            $name:"; done
  } >"$file"
}
