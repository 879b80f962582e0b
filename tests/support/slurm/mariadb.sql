CREATE DATABASE slurm_acct;
CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct.* TO 'slurm'@'127.0.0.1';
