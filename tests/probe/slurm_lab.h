#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/base/listen_socket.h"
#include "tests/health/planted_node.h"

namespace mm::probe::test {

/// A Slurm of four nodes on this machine, for as long as the object lives: slurmctld and four
/// slurmd on loopback. Needs root and the packages slurm-wlm and munge; `ready()` says whether it
/// stands. One at a time on a machine, whatever process asks: the next waits for the last to end,
/// since they share munge.
class SlurmLab {
 public:
  SlurmLab() {
    if (::geteuid() != 0 || !sh("command -v slurmctld slurmd munged srun")) {
      why_not_ = "a Slurm of one machine needs root, slurm-wlm and munge";
      return;
    }
    lock_ = ::open((std::filesystem::temp_directory_path() / "mm_slurm_lab.lock").c_str(),
                   O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ::flock(lock_, LOCK_EX);
    sh("test -f /etc/munge/munge.key || (dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 "
       "count=1 "
       "&& chown munge /etc/munge/munge.key && chmod 400 /etc/munge/munge.key)");
    sh("mkdir -p /run/munge && chown munge /run/munge");
    if (!sh("munge -n | unmunge"))
      own_munge_ = sh("su -s /bin/sh munge -c '/usr/sbin/munged --pid-file=/run/munge/mmlab.pid'");
    write_conf();
    if (!sh("slurmctld -f " + conf())) return;
    for (int node = 1; node <= 4; ++node) sh(fmt::format("slurmd -N n{} -f {}", node, conf()));
    // Nodes register within seconds; srun waits for resources by itself, this tells whether they
    // come.
    ready_ = sh(fmt::format("{} timeout 30 srun -N4 --immediate=25 true", variables()));
  }
  SlurmLab(const SlurmLab&) = delete;
  ~SlurmLab() {
    // The daemons write below the directory until they have ended.
    for (const char* name : {"n1", "n2", "n3", "n4", "ctld"})
      sh(fmt::format("p=$(cat {}/{}.pid) && kill $p && timeout 20 tail --pid=$p -f /dev/null",
                     tree_.root().string(), name));
    if (own_munge_)
      sh("p=$(cat /run/munge/mmlab.pid) && kill $p && timeout 20 tail --pid=$p -f /dev/null");
    if (lock_ >= 0) ::close(lock_);
  }
  bool ready() const { return ready_; }
  const std::string& why_not() const { return why_not_; }
  /// In front of srun.
  std::string variables() const { return "SLURM_CONF=" + conf(); }
  const std::filesystem::path& root() const { return tree_.root(); }

 private:
  static bool sh(const std::string& command) {
    return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
  }
  std::string conf() const { return (tree_.root() / "slurm.conf").string(); }
  static int free_port() { return ListenSocket::on_loopback(0).port(); }

  void write_conf() {
    char host[256] = {};
    ::gethostname(host, sizeof(host) - 1);
    const std::string at = tree_.root().string();
    std::string text = fmt::format(
        "ClusterName=lab\nSlurmctldHost={0}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
        "AuthType=auth/munge\nStateSaveLocation={1}/state\nSlurmdSpoolDir={1}/spool-%n\n"
        "SlurmctldPidFile={1}/ctld.pid\nSlurmdPidFile={1}/%n.pid\nSlurmctldLogFile={1}/ctld.log\n"
        "SlurmdLogFile={1}/%n.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\n"
        "SlurmctldPort={2}\nMpiDefault=none\nTopologyPlugin=topology/tree\n"
        "SlurmdParameters=config_overrides\nJobRequeue=1\n",
        host, at, free_port());
    for (int node = 1; node <= 4; ++node)
      text += fmt::format("NodeName=n{} NodeHostname={} NodeAddr=127.0.0.1 Port={} CPUs=8\n", node,
                          host, free_port());
    tree_.plant("state/.keep", "");
    tree_.plant("slurm.conf", text + "PartitionName=all Nodes=n[1-4] Default=YES State=UP\n");
    tree_.plant("topology.conf",
                "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\n"
                "SwitchName=spine Switches=leaf[1-2]\n");
  }

  health::test::PlantedTree tree_;
  std::string why_not_ = "its daemons did not start";
  int lock_ = -1;
  bool ready_ = false, own_munge_ = false;
};

}  // namespace mm::probe::test
